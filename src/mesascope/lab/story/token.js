// One token on its circle: from token to token it turns by the angle of its sequence.
import { Clock, set, still, svg } from "mesascope-motion";

const SECONDS = 0.7; // from token to token
const TRAIL = 7; // tokens that are seen

export default {
  template: `<figure class="story-drawing">
    <svg viewBox="-1.45 -1.3 2.9 2.6" role="img" ref="drawing"><g ref="axes"></g><g ref="trail"></g><g ref="dot"></g></svg>
    <figcaption>
      <button type="button" class="story-button" @click="toggle">{{ playing ? "Pause" : "Play" }}</button>
      <button type="button" class="story-button" @click="next">Another sequence</button>
      <span v-show="length">token {{ place + 1 }} of the first {{ length }}: one coordinate turns by {{ turn }}°</span>
    </figcaption>
  </figure>`,
  props: { data: Object },
  data: () => ({ playing: false, place: 0, length: 0, degrees: 0, turn: "0", chosen: 0 }),
  mounted() {
    const { axes, dot } = this.$refs;
    svg(axes, "line", { x1: -1.3, x2: 1.3, class: "story-axis" });
    svg(axes, "line", { y1: -1.2, y2: 1.2, class: "story-axis" });
    svg(axes, "text", { x: 1.34, y: -0.06, class: "story-label" }, "Re");
    svg(axes, "text", { x: 0.11, y: -1.14, class: "story-label" }, "Im");
    this.circle = svg(axes, "circle", { class: "story-circle" });
    this.arm = svg(dot, "line", { class: "story-arm" });
    this.point = svg(dot, "circle", { r: 0.055, class: "story-token" });
    this.clock = new Clock(this.$el, (seconds) => this.move(seconds));
    this.take();
    if (!still()) this.toggle();
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
    toggle() {
      this.playing = !this.playing;
      this.playing ? this.clock.start() : this.clock.stop();
    },
    next() {
      this.chosen += 1;
      this.take();
    },
    take() {
      if (!this.data) return;
      const { re, im } = this.data.sequences[this.chosen % this.data.sequences.length];
      const size = Math.hypot(re[0], im[0]);
      const radius = size > 0 ? Math.min(1.1, Math.max(0.25, size / this.data.scale)) : 0;
      this.start = Math.atan2(im[0], re[0]);
      const turn = Math.atan2(im[1], re[1]) - this.start;
      this.angle = Math.atan2(Math.sin(turn), Math.cos(turn));
      Object.assign(this, { radius, length: re.length, now: 0, place: -1 }); // a place that is not drawn
      this.degrees = Math.round((this.angle * 180) / Math.PI);
      this.turn = String(this.degrees).replace("-", "−");
      set(this.circle, { r: radius });
      set(this.$refs.drawing, {
        "aria-label": `A token of size ${size.toPrecision(2)} turns by ${this.degrees} degrees from token to token.`,
      });
      this.draw();
    },
    move(seconds) {
      if (!this.data) return;
      this.now = (this.now + seconds / SECONDS) % this.length;
      this.draw();
    },
    at(place) {
      const angle = this.start + this.angle * place;
      return [this.radius * Math.cos(angle), -this.radius * Math.sin(angle)];
    },
    draw() {
      const place = Math.floor(this.now), part = Math.min(1, 2 * (this.now - place));
      const [x, y] = this.at(place ? place - 1 + part : 0);
      set(this.arm, { x2: x, y2: y });
      set(this.point, { cx: x, cy: y });
      if (place === this.place && this.$refs.trail.childElementCount) return;
      this.place = place;
      this.$refs.trail.replaceChildren();
      for (let one = Math.max(0, place - TRAIL); one <= place; one++) {
        const [cx, cy] = this.at(one), age = (place - one) / TRAIL;
        svg(this.$refs.trail, "circle", { cx, cy, r: 0.035, class: "story-token", opacity: 0.75 - 0.6 * age });
        const label = { x: 1.16 * cx, y: 1.16 * cy + 0.035, class: "story-label", opacity: 1 - 0.6 * age };
        if (one < 3 || one === place) svg(this.$refs.trail, "text", label, `x${subscript(one + 1)}`);
      }
    },
  },
};

const subscript = (number) => [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
