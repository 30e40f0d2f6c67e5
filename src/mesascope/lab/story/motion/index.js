// What the drawings of the story share: the frames of an animation, SVG elements, and numbers in a few digits.

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Call `frame(seconds)` before every repaint while it runs and `element` is on the screen. */
export class Clock {
  constructor(element, frame) {
    this.running = false;
    this.seen = false;
    this.frame = frame;
    this.observer = new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting;
      this.wake();
    });
    this.observer.observe(element);
  }
  start() {
    this.running = true;
    this.wake();
  }
  stop() {
    this.running = false;
  }
  wake() {
    if (this.handle || !this.running || !this.seen) return;
    let last = performance.now();
    const step = (now) => {
      this.handle = 0;
      if (!this.running || !this.seen) return;
      this.frame(Math.min(0.1, (now - last) / 1000)); // a window that was hidden goes on where it was
      last = now;
      this.handle = requestAnimationFrame(step);
    };
    this.handle = requestAnimationFrame(step);
  }
  end() {
    this.stop();
    this.observer.disconnect();
  }
}

export function svg(parent, name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(made, attributes);
  made.textContent = text;
  parent?.append(made);
  return made;
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

export function digits(value, count = 3) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(count))).replace("-", "−") : "–";
}

/** The place of `value` in an increasing list: its index and the share of the way to the next. */
export function between(values, value) {
  let low = 0, high = values.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle;
    else high = middle;
  }
  const width = values[high] - values[low];
  return [low, width > 0 ? Math.min(1, Math.max(0, (value - values[low]) / width)) : 0];
}

export const mix = (values, [index, share]) =>
  values[index] + share * ((values[index + 1] ?? values[index]) - values[index]);
