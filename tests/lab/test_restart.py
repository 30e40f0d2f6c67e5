"""The server dies and comes back, is asked to do what it cannot, and ends."""

import socket
import subprocess
import sys

import pytest

SMALL = "?dim=2&horizon=6&law.kind=gaussian&law.scale=1&init.kind=diagonal&init.a=0.5&init.b=0.2"


@pytest.mark.slow
def test_the_page_comes_back_with_its_setting_after_the_server_was_killed(
    browser, start_lab, tmp_path, monkeypatch
):
    monkeypatch.setenv(
        "MESASCOPE_LAB_TOKEN", "a token & more"
    )  # of both servers: another one would lock the page
    lost = (r"ERR_CONNECTION_REFUSED", r"WebSocket", r"Failed to load resource")
    with browser.page(quiet=lost) as (page, seen):
        with start_lab(tmp_path, "--port", "0") as lab:
            page.goto(lab.at(SMALL))
            page.wait_for_selector('[data-fact="limit"]')
            field = page.locator('input[data-field="init.a"]')
            field.fill("0.75")
            page.wait_for_function("location.search.includes('init.a=0.75')")
            page.evaluate("window.ofTheOldServer = true")
            port = str(lab.port)
            lab.kill()
        with start_lab(tmp_path, "--port", port):
            # the new server draws the facts again
            there = "!window.ofTheOldServer && document.querySelector('[data-fact=limit]')"
            page.wait_for_function(there, timeout=90_000)  # the server starts, and its processes do
            assert field.input_value() == "0.75"
            field.fill("0.8")
            page.wait_for_function("location.search.includes('init.a=0.8&')")
        assert seen.errors == []
        assert seen.outside() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "70000"], "--port 70000: must lie between 0 and 65535"),
        (["--records", "nowhere"], "--records nowhere: no such folder"),
    ],
)
def test_bad_arguments_are_reported_in_one_line(tmp_path, arguments, message):
    command = [sys.executable, "-m", "mesascope", "lab", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"mesascope lab: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_port_that_is_taken_is_reported(tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "mesascope", "lab", "--port", str(port)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"mesascope lab: --port {port}: cannot be used")


@pytest.mark.slow
def test_sigterm_ends_it_as_ctrl_c_does(start_lab, tmp_path):
    with start_lab(tmp_path, "--port", "0") as lab:
        lab.process.terminate()
        assert (
            lab.process.wait(30) == 0
        )  # that nothing is printed, such as of leaked semaphores, is seen at the end


@pytest.mark.slow
def test_a_websocket_with_headers_that_are_no_text_is_a_bad_request(start_lab, tmp_path):
    """Without a token, too; that nothing is printed and the end is clean is seen when the lab ends."""
    lines = [
        b"GET / HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Protocol: \xff",
    ]
    with start_lab(tmp_path, "--port", "0") as lab:
        with socket.create_connection(("127.0.0.1", lab.port), timeout=20) as connection:
            connection.sendall(b"\r\n".join([*lines, b"", b""]))
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        lab.process.terminate()
        assert lab.process.wait(30) == 0
