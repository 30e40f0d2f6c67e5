// A figure of plotly. Unlike NiceGUI's own it comes as a text, so that nothing watches its numbers, which costs more than
// drawing them, and every picture has a frame of its own: the first that changed is seen while the next is drawn.
const waiting = new Set();
let ticking = false;

function tick() {
  const [first] = waiting;
  waiting.delete(first);
  ticking = waiting.size > 0;
  if (ticking) requestAnimationFrame(tick);
  first?.draw();
}

export default {
  template: "<div></div>",
  props: { options: String },
  async mounted() {
    window.addEventListener("resize", this.fit);
    const { Plotly } = await import("nicegui-plotly");
    this.plotly = Plotly;
    this.update();
  },
  unmounted() {
    window.removeEventListener("resize", this.fit);
    waiting.delete(this);
    this.plotly?.purge(this.$el);
    this.plotly = null;
  },
  methods: {
    update() {
      if (!this.plotly) return; // it draws once it is there
      waiting.add(this);
      if (!ticking) requestAnimationFrame(tick);
      ticking = true;
    },
    draw() {
      const { data, layout, config } = JSON.parse(this.options);
      if (!data.length) return; // nothing to draw yet
      this.plotly.react(this.$el, data, layout, config);
    },
    fit() {
      if (this.$el.offsetWidth && this.$el._fullLayout) this.plotly.Plots.resize(this.$el);
    },
  },
};
