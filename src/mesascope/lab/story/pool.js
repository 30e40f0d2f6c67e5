// Memorizing or learning: errors of the best layer on the tasks of its pool and on new ones, by the number of tasks.
import { digits, set, svg } from "mesascope-motion";

const WIDE = 420, HIGH = 220, LEFT = 34, RIGHT = 14, TOP = 14, BOTTOM = 36;
const COLOURS = { pool: "story-a", new: "story-b" };
const NEAR = 1.1; // errors on new tasks and on those of the pool that differ by less than a tenth

export default {
  template: `<figure class="story-drawing">
    <svg viewBox="0 0 ${WIDE} ${HIGH}" ref="curves" class="story-pool" role="img" :aria-label="sentence"></svg>
    <figcaption>
      <label>tasks in the pool, K
        <input type="range" min="0" :max="last" :value="at" @input="slide" :disabled="!data" data-act="tasks" :aria-valuetext="sentence">
      </label>
      <output data-fact="pool" aria-live="off">{{ sentence }}</output>
    </figcaption>
  </figure>`,
  props: { data: Object },
  data: () => ({ at: 0, last: 1, sentence: "Errors by the number of tasks: guess first." }),
  mounted() {
    this.take();
  },
  watch: {
    data() {
      this.take();
    },
  },
  methods: {
    take() {
      const drawing = this.$refs.curves, floor = HIGH - BOTTOM;
      drawing.replaceChildren();
      svg(drawing, "path", { d: `M${LEFT} ${TOP}V${floor}H${WIDE - RIGHT}`, class: "story-axis", fill: "none" });
      svg(drawing, "text", { x: WIDE / 2, y: HIGH - 3, class: "story-label", "text-anchor": "middle" }, "tasks in the pool, K");
      if (!this.data) return;
      const { sizes, start, zero, pools } = this.data, title = `mean squared error: exact, mean of ${pools} pools`;
      svg(drawing, "text", { x: WIDE - RIGHT, y: TOP, class: "story-label", "text-anchor": "end" }, title);
      this.last = sizes.length - 1;
      this.at = sizes.indexOf(start);
      for (const size of sizes.filter((size) => Number.isInteger(Math.log2(size) / 2)))
        svg(drawing, "text", { x: this.across(size), y: HIGH - 20, class: "story-label", "text-anchor": "middle" }, String(size));
      for (const error of [0, 1, 2])
        svg(drawing, "text", { x: LEFT - 6, y: this.up(error) + 4, class: "story-label", "text-anchor": "end" }, String(error));
      svg(drawing, "line", { x1: LEFT, x2: WIDE - RIGHT, y1: this.up(zero), y2: this.up(zero), class: "story-here" });
      svg(drawing, "text", { x: WIDE - RIGHT, y: this.up(zero) - 6, class: "story-label", "text-anchor": "end" }, "predicting 0");
      for (const name of Object.keys(COLOURS)) {
        const points = this.data[name].map((error, k) => `${this.across(sizes[k])} ${this.up(error)}`);
        svg(drawing, "path", { d: `M${points.join("L")}`, class: `story-line ${COLOURS[name]}` });
      }
      this.here = svg(drawing, "line", { y1: TOP, y2: floor, class: "story-axis" });
      const label = (name, text, k, shift) =>
        svg(drawing, "text", { x: this.across(sizes[k]) + 6, y: this.up(this.data[name][k]) + shift, class: `story-label ${COLOURS[name]}` }, text);
      label("new", "new tasks", 2, -8);
      label("pool", "tasks of the pool", 0, 18);
      this.dots = Object.entries(COLOURS).map(([name, colour]) => [name, svg(drawing, "circle", { r: 5, class: colour })]);
      this.draw();
    },
    across(size) {
      return LEFT + (Math.log(size) / Math.log(this.data.sizes.at(-1))) * (WIDE - LEFT - RIGHT);
    },
    up(error) {
      return HIGH - BOTTOM - (error / (1.08 * Math.max(...this.data.new))) * (HIGH - TOP - BOTTOM);
    },
    slide(event) {
      this.at = Number(event.target.value);
      this.draw();
    },
    draw() {
      const size = this.data.sizes[this.at], x = this.across(size);
      set(this.here, { x1: x, x2: x });
      for (const [name, dot] of this.dots) set(dot, { cx: x, cy: this.up(this.data[name][this.at]) });
      const own = this.data.pool[this.at], fresh = this.data.new[this.at];
      const word = fresh > this.data.zero ? "it memorizes" : fresh < NEAR * own ? "it learns in context" : "between memorizing and learning";
      this.sentence = `K = ${size}: error ${digits(own)} on the pool, ${digits(fresh)} on new tasks: ${word}`;
    },
  },
};
