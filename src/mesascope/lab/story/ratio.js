// Why the step is too short or too long: the answer of the layer beside the truth, for a first token of any size.
import { digits, set, svg } from "mesascope-motion";

const SIDE = 300, WIDE = 420, HIGH = 220, LEFT = 14, RIGHT = 14, TOP = 40, BOTTOM = 34;

export default {
  template: `<figure class="story-drawing story-why">
    <svg viewBox="0 35 ${SIDE} 145" ref="arrows" role="img" :aria-label="sentence"></svg>
    <svg viewBox="0 0 ${WIDE} ${HIGH}" ref="histogram" role="img" :aria-label="described"></svg>
    <figcaption>
      <label v-if="plain">size of an entry of the first token, |x₁|
        <input type="range" min="0" :max="most" :step="most / 200" :value="size" @input="slide" data-act="size" :aria-valuetext="sentence">
      </label>
      <output data-fact="answer" aria-live="off">{{ sentence }}</output>
    </figcaption>
  </figure>`,
  props: { data: Object },
  data: () => ({ size: 1, most: 3, plain: false, sentence: "", described: "" }),
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
      if (!this.data) return;
      const { ab, most, typical } = this.data;
      this.most = most;
      const other = Math.abs(typical - this.typical) > 0.05 * typical; // of another law
      if (!this.plain || other) this.size = typical;
      this.typical = typical;
      this.size = Math.min(this.size, most);
      this.ab = ab;
      this.plain = ab !== null;
      this.drawHistogram();
      this.draw();
    },
    slide(event) {
      this.size = Number(event.target.value);
      this.draw();
    },
    draw() {
      if (!this.plain) {
        this.$refs.arrows.replaceChildren();
        this.sentence = "These weights are no plain step: their answers are only measured.";
        set(this.here, { visibility: "hidden" });
        return;
      }
      const share = this.ab * this.size * this.size;
      const word = Math.abs(share - 1) < 0.03 ? "right" : share < 1 ? "too short" : "too long";
      this.sentence = `|x₁| = ${digits(this.size, 2)}: the step answers ab·x₁² = ${digits(share, 2)} of the next token, ${word}`;
      this.drawArrows(share, word);
      const inside = share <= this.data.edges.at(-1);
      if (inside) this.sentence += " (dotted line)";
      set(this.here, { x1: this.across(share), x2: this.across(share), visibility: inside ? "visible" : "hidden" });
    },
    drawArrows(share, word) {
      const drawing = this.$refs.arrows, longest = SIDE - 40;
      drawing.replaceChildren();
      const unit = Math.min(150, longest / Math.max(1, share));
      const arrow = (y, length, name, text) => {
        svg(drawing, "text", { x: 20, y: y - 12, class: "story-label" }, text);
        svg(drawing, "line", { x1: 20, x2: 20 + length, y1: y, y2: y, class: `story-arrow ${name}` });
        if (length > 2) svg(drawing, "path", { d: `M${20 + length + 8} ${y}l-12 -7v14z`, class: `story-head ${name}` });
      };
      arrow(70, unit, "story-truth", "the next token");
      arrow(140, unit * share, "story-answer", `the layer's answer: ${word}`);
      svg(drawing, "path", { d: `M${20 + unit + 8} 50v60m0 24v31`, class: "story-axis" }); // not through the words
    },
    across(ratio) {
      const { edges } = this.data;
      return LEFT + ((ratio - edges[0]) / (edges.at(-1) - edges[0])) * (WIDE - LEFT - RIGHT);
    },
    drawHistogram() {
      const { edges, counts, mean, theory, sequences } = this.data, drawing = this.$refs.histogram;
      drawing.replaceChildren();
      const most = Math.max(...counts), floor = HIGH - BOTTOM;
      counts.forEach((count, k) => {
        const x = this.across(edges[k]), high = (count / most) * (floor - TOP);
        svg(drawing, "rect", { x, width: Math.max(1, this.across(edges[k + 1]) - x - 1), y: floor - high, height: high, class: "story-bar" });
      });
      svg(drawing, "line", { x1: LEFT, x2: WIDE - RIGHT, y1: floor, y2: floor, class: "story-axis" });
      const mark = (ratio, name, text, y, anchor) => {
        const x = this.across(ratio);
        svg(drawing, "line", { x1: x, x2: x, y1: y + 4, y2: floor, class: name });
        svg(drawing, "text", { x: x + (anchor === "end" ? -4 : 4), y: y + 4, class: "story-label", "text-anchor": anchor }, text);
      };
      if (edges.at(-1) >= 1) mark(1, "story-axis", "1: right", 28, mean < 1 ? "start" : "end"); // away from the mean
      const told = `mean ${digits(mean)}${theory === null ? "" : `, theory ${digits(theory)}`}`;
      mark(mean, "story-mean", told, 12, this.across(mean) > WIDE / 2 ? "end" : "start");
      for (const edge of [edges[0], edges.at(-1)]) {
        const anchor = edge === edges[0] ? "start" : "end";
        svg(drawing, "text", { x: this.across(edge), y: HIGH - 16, class: "story-label", "text-anchor": anchor }, digits(edge, 2));
      }
      svg(drawing, "text", { x: WIDE / 2, y: HIGH - 3, class: "story-label", "text-anchor": "middle" }, `answer divided by truth, ŷ/x, on ${sequences} new sequences`);
      this.here = svg(drawing, "line", { y1: TOP, y2: floor, class: "story-here" });
      this.described = `Histogram of answer divided by truth on ${sequences} sequences: mean ${digits(mean)}.`;
    },
  },
};
