"""Write docs/lab.png, the story of the lab after training: `python docs/write_lab.py`; needs chromium and the extra `dev`."""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).with_name("lab.png")
STEPS = "train", "result"
WIDTH = 1100
MARGIN = 16
TRAINED = "document.querySelector('[data-act=play]').innerText.includes('Train')"
BECAME = "document.querySelector('[data-fact=result]').innerText.includes('It became')"


def take(address, path):
    """Open the story, train, and keep the steps that show it."""
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(address)
        page.wait_for_function(BECAME, timeout=180_000)
        page.locator('[data-act="play"]').click()
        page.wait_for_function("!(" + TRAINED + ")")
        page.wait_for_function(TRAINED)
        page.evaluate("scrollTo(0, 0)")  # the header stays where the window is
        boxes = [page.locator(f'[data-step="{step}"]').bounding_box() for step in STEPS]
        top, bottom = boxes[0]["y"] - MARGIN, boxes[-1]["y"] + boxes[-1]["height"]
        clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top + MARGIN}
        page.screenshot(path=path, full_page=True, clip=clip)
        chromium.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mesascope", "lab", "--no-warm", "--no-browser", "--port", "0"]
        lab = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            take(re.search(r"http://\S+", lab.stdout.readline())[0], PICTURE)
        finally:
            lab.send_signal(signal.SIGINT)
            lab.wait(30)
    Image.open(PICTURE).convert("RGB").save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
