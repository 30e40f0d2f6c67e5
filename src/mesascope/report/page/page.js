// Draws what the scripts of type application/json in .plot elements describe, one after the other; follows the theme of
// the reader; hides and shows traces by the buttons of the legends; fits the figures to paper.
"use strict";
(() => {
  const plots = Array.from(document.querySelectorAll(".plot"));
  const described = new Map(plots.map((plot) => [plot, JSON.parse(plot.querySelector("script").textContent)]));
  const hidden = new Map(plots.map((plot) => [plot, new Set()]));
  const root = document.documentElement;

  // Colours are named by variables of the style sheet, which hold those of the theme.
  function themed(value, style) {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) {
      return typeof value[0] === "number" ? value : value.map((one) => themed(one, style));
    }
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, themed(one, style)]));
    }
    return value;
  }

  function draw(plot, width) {
    const { data, layout } = themed(described.get(plot), getComputedStyle(root));
    hidden.get(plot).forEach((n) => { data[n].visible = false; });
    const options = {
      displaylogo: false,
      responsive: width === undefined,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "svg", filename: plot.dataset.name },
    };
    return window.Plotly.react(plot, data, width === undefined ? layout : { ...layout, width }, options);
  }

  async function drawAll() {
    for (const plot of plots) {
      await draw(plot);
      await new Promise((next) => { setTimeout(next); }); // let the reader scroll meanwhile
    }
    root.dataset.drawn = String(plots.length);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".legend button");
    if (!button) {
      return;
    }
    const plot = button.closest(".panel").querySelector(".plot");
    const hide = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!hide));
    button.dataset.traces.split(",").map(Number).forEach((n) => hidden.get(plot)[hide ? "add" : "delete"](n));
    draw(plot);
  });

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // On paper the page is narrower than on a screen: a panel takes half of it, or all where it is alone.
  window.addEventListener("beforeprint", () => {
    plots.forEach((plot) => draw(plot, plot.closest(".panels").children.length > 1 ? 330 : 480));
  });
  window.addEventListener("afterprint", drawAll);
  drawAll();
})();
