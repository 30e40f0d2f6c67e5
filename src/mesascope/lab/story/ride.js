// Training as a ride: dots roll over the loss of a and b, in step with the curves of the loss and of ab.
import { toRaw } from "vue";
import { between, Clock, digits, mix, set, still, svg } from "mesascope-motion";

const SECONDS = 5; // from the start to the end
const SIDE = 360, WIDE = 360, HIGH = 150; // units of the drawings
const LEFT = 46, RIGHT = 12, TOP = 12, BOTTOM = 24; // of a curve
const CELLS = 120; // of the surface along each axis

export default {
  template: `<figure class="story-drawing story-ride">
    <div class="story-plane">
      <canvas ref="surface" width="${CELLS}" height="${CELLS}" aria-hidden="true"></canvas>
      <svg viewBox="0 0 ${SIDE} ${SIDE}" ref="plane" tabindex="0" role="application"
        aria-roledescription="plane of the weights a and b" :aria-label="alternative" aria-keyshortcuts="ArrowLeft ArrowRight ArrowUp ArrowDown"
        @pointerdown="grab" @pointermove="drag" @pointerup="release" @pointercancel="held = undefined" @keydown="key"></svg>
    </div>
    <div class="story-curves">
      <svg v-for="name in ['ab', 'loss']" :key="name" viewBox="0 0 ${WIDE} ${HIGH}" :ref="name" aria-hidden="true"></svg>
    </div>
    <figcaption>
      <button type="button" class="story-button story-main" data-act="play" @click="toggle" :disabled="!ready">{{ playing ? "Pause" : "Train ▶" }}</button>
      <input type="range" min="0" max="1000" :value="Math.round(1000 * share)" @input="scrub" :disabled="!ready" aria-label="training time"
        :aria-valuetext="alternative" data-act="scrub">
      <output data-fact="now" aria-live="off">{{ alternative }}</output>
    </figcaption>
    <p class="story-hidden" aria-live="polite">{{ announced }}</p>
  </figure>`,
  props: { data: Object },
  emits: ["start"],
  data: () => ({ playing: false, ready: false, share: 0, alternative: "", announced: "" }),
  mounted() {
    this.clock = new Clock(this.$el, (seconds) => this.move(seconds));
    this.take();
  },
  unmounted() {
    this.clock.end();
  },
  watch: {
    data() {
      this.take();
    },
  },
  methods: {
    take() {
      const flow = (this.flow = toRaw(this.data));
      if (!flow) return;
      this.paint();
      this.drawPlane();
      this.curves = {
        ab: curve(this.$refs.ab[0], flow.times, flow.ab, "product ab", flow.limit, "theory"),
        loss: curve(this.$refs.loss[0], flow.times, flow.loss, "loss", flow.surface[0], "always answering 0:"),
      };
      if (!this.dragged && !this.shown) this.share = still() ? 1 : 0;
      this.shown = this.ready = true;
      this.draw();
    },
    // The plane of a and b

    place(a, b) {
      const scale = SIDE / (2 * this.flow.reach);
      return [(a + this.flow.reach) * scale, (this.flow.reach - b) * scale];
    },
    paint() {
      const { reach, surface, best } = this.flow, context = this.$refs.surface.getContext("2d");
      const image = context.createImageData(CELLS, CELLS);
      const value = (product) => surface[0] + surface[1] * product + surface[2] * product * product;
      const least = value(best), most = Math.max(value(reach * reach), value(-reach * reach)) - least || 1;
      for (let row = 0; row < CELLS; row++)
        for (let column = 0; column < CELLS; column++) {
          const a = ((column + 0.5) / CELLS) * 2 * reach - reach, b = reach - ((row + 0.5) / CELLS) * 2 * reach;
          const height = Math.pow(Math.max(0, (value(a * b) - least) / most), 0.3);
          image.data.set(shade(height), 4 * (row * CELLS + column));
        }
      context.putImageData(image, 0, 0);
    },
    drawPlane() {
      const plane = this.$refs.plane, { reach, best, a, b } = this.flow;
      plane.replaceChildren();
      const [x, y] = this.place(0, 0);
      svg(plane, "line", { x1: 0, x2: SIDE, y1: y, y2: y, class: "story-axis" });
      svg(plane, "line", { y1: 0, y2: SIDE, x1: x, x2: x, class: "story-axis" });
      for (const sign of [1, -1]) svg(plane, "path", { d: this.hyperbola(best, sign), class: "story-valley" });
      svg(plane, "text", { x: SIDE - 14, y: y - 6, class: "story-label story-a" }, "a");
      svg(plane, "text", { x: x + 7, y: 16, class: "story-label story-b" }, "b");
      const corner = { x: SIDE - 8, y: SIDE - 8, class: "story-label", "text-anchor": "end" };
      svg(plane, "text", corner, `dark: low loss; dashed: lowest; axes to ±${digits(reach, 2)}`);
      this.trails = a.map(() => svg(plane, "path", { class: "story-trail" }));
      this.dots = a.map(() => svg(plane, "circle", { r: 7, class: "story-dot" }));
      this.paths = a.map((one, j) => one.map((value, k) => this.place(value, b[j][k])));
    },
    hyperbola(product, sign) {
      const { reach } = this.flow, points = [];
      const from = Math.abs(product) / reach;
      for (let k = 0; k <= 60 && from > 0; k++) {
        const a = sign * from * Math.pow(reach / from, k / 60);
        points.push(this.place(a, product / a).map((one) => one.toFixed(1)).join(" "));
      }
      return points.length ? `M${points.join("L")}` : "";
    },
    // Time

    toggle() {
      if (this.playing) return this.pause();
      if (still()) {
        this.share = 1; // nothing moves for those who ask their system for less motion
        this.draw();
        return this.pause();
      }
      if (this.share >= 1) this.share = 0;
      this.playing = true;
      this.clock.start();
    },
    pause() {
      this.playing = false;
      this.clock.stop();
      this.announced = this.alternative;
    },
    move(seconds) {
      this.share = Math.min(1, this.share + seconds / SECONDS);
      this.draw();
      if (this.share >= 1) this.pause();
    },
    scrub(event) {
      this.share = event.target.value / 1000;
      this.draw();
      this.pause();
    },
    draw() {
      const { times, ab, loss } = this.flow;
      const now = times[0] + this.share * (times[times.length - 1] - times[0]), at = between(times, now);
      this.paths.forEach((path, j) => {
        const [x, y] = [0, 1].map((axis) => mix([path[at[0]][axis], (path[at[0] + 1] ?? path[at[0]])[axis]], [0, at[1]]));
        set(this.dots[j], { cx: x, cy: y });
        set(this.trails[j], { d: `M${path.slice(0, at[0] + 1).concat([[x, y]]).map((one) => `${one[0].toFixed(1)} ${one[1].toFixed(1)}`).join("L")}` });
      });
      for (const [name, values] of [["ab", ab], ["loss", loss]]) this.curves[name](now, mix(values, at));
      this.alternative = `training time ${digits(now)}: ab = ${digits(mix(ab, at))}, loss ${digits(mix(loss, at), 4)}`;
    },
    // A start that is dragged

    point(event) {
      const box = this.$refs.plane.getBoundingClientRect(), { reach } = this.flow;
      const along = (share) => Math.max(-1, Math.min(1, 2 * share - 1)) * reach;
      return { a: along((event.clientX - box.left) / box.width), b: -along((event.clientY - box.top) / box.height) };
    },
    send(start) {
      this.dragged = true;
      this.share = 0;
      this.pause();
      this.$emit("start", start);
    },
    grab(event) {
      if (event.button !== 0 || !this.ready) return;
      this.$refs.plane.setPointerCapture(event.pointerId);
      this.held = 0;
      this.drag(event);
    },
    drag(event) {
      if (this.held === undefined || event.timeStamp - this.held < 60) return;
      this.held = event.timeStamp;
      this.send(this.point(event));
    },
    release(event) {
      if (this.held === undefined) return;
      this.held = undefined;
      this.send(this.point(event));
    },
    key(event) {
      const along = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!along || !this.ready) return;
      event.preventDefault();
      const step = this.flow.reach * (event.shiftKey ? 0.2 : 0.02);
      const from = this.flow.start;
      this.flow.start = { a: from.a + step * along[0], b: from.b + step * along[1] };
      this.send(this.flow.start);
    },
  },
};

const LOW = [13, 66, 106], HIGH_COLOUR = [233, 226, 196];

function shade(height) {
  return [...LOW.map((low, k) => low + (HIGH_COLOUR[k] - low) * Math.min(1, height)), 255];
}

/** Draw one curve, and a line at a value to hold it against; return what moves its dot. */
function curve(drawing, times, values, title, line, name) {
  drawing.replaceChildren();
  const all = line === null ? values : [...values, line];
  let low = Math.min(...all), high = Math.max(...all);
  if (high - low < 1e-12 * Math.max(1, Math.abs(high))) [low, high] = [low - 0.5, high + 0.5];
  const first = times[0], span = times[times.length - 1] - first || 1;
  const x = (time) => LEFT + ((time - first) / span) * (WIDE - LEFT - RIGHT);
  const y = (value) => HIGH - BOTTOM - ((value - low) / (high - low)) * (HIGH - TOP - BOTTOM);
  svg(drawing, "line", { x1: LEFT, x2: WIDE - RIGHT, y1: HIGH - BOTTOM, y2: HIGH - BOTTOM, class: "story-axis" });
  for (const value of [low, high])
    svg(drawing, "text", { x: LEFT - 5, y: y(value) + 4, class: "story-label", "text-anchor": "end" }, digits(value));
  svg(drawing, "text", { x: WIDE - RIGHT, y: HIGH - 8, class: "story-label", "text-anchor": "end" }, `training time ${digits(first)} … ${digits(first + span)}`);
  svg(drawing, "text", { x: LEFT, y: HIGH - 8, class: "story-label" }, title);
  if (line !== null) {
    svg(drawing, "line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(line), y2: y(line), class: "story-valley" });
    const below = y(line) < TOP + 12 ? 14 : -5;
    svg(drawing, "text", { x: WIDE - RIGHT, y: y(line) + below, class: "story-label", "text-anchor": "end" }, `${name} ${digits(line, 4)}`);
  }
  svg(drawing, "path", { d: `M${times.map((time, k) => `${x(time).toFixed(1)} ${y(values[k]).toFixed(1)}`).join("L")}`, class: "story-curve" });
  const dot = svg(drawing, "circle", { r: 5, class: "story-dot" });
  return (time, value) => set(dot, { cx: x(time), cy: y(value) });
}
