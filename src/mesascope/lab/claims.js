// A link to a claim opens it on this page; arrow keys move between the cells of a matrix, of which Tab reaches one.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-claim]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return; // these open another window
  event.preventDefault();
  reach(link);
  emitEvent("lab_claim", link.dataset.claim);
});

document.addEventListener("keydown", (event) => {
  const cell = event.target.closest?.(".matrix a[data-claim]"), next = cell && neighbour(cell, event.key);
  if (!next) return;
  event.preventDefault();
  reach(next);
});

function reach(cell) {
  for (const one of cell.closest(".matrix")?.querySelectorAll("a[tabindex='0']") || []) one.setAttribute("tabindex", "-1");
  if (cell.closest(".matrix")) cell.setAttribute("tabindex", "0");
  cell.focus();
}

function neighbour(cell, key) {
  const cells = [...cell.closest(".matrix").querySelectorAll("a[data-claim]")], at = cells.indexOf(cell);
  switch (key) {
    case "ArrowLeft": return cells[at - 1];
    case "ArrowRight": return cells[at + 1];
    case "Home": return cells[0];
    case "End": return cells.at(-1);
    case "ArrowUp": return nearest(cell, cells.slice(0, at).filter((one) => middle(one).y < middle(cell).y));
    case "ArrowDown": return nearest(cell, cells.slice(at + 1).filter((one) => middle(one).y > middle(cell).y));
  }
}

// As the picture places it: the shapes themselves have their middles at other heights.
function middle(cell) {
  const { e: x, f: y } = cell.transform.baseVal.getItem(0).matrix;
  return { x, y };
}

// The line counts more than the place in it.
function nearest(cell, others) {
  const from = middle(cell), far = (one) => 1000 * Math.abs(middle(one).y - from.y) + Math.abs(middle(one).x - from.x);
  return others.sort((one, other) => far(one) - far(other))[0];
}
