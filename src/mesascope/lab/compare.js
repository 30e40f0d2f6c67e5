// The address holds what both sides show; both have the theme of this window.
setInterval(() => {
  const sides = [...document.querySelectorAll(".lab-sides iframe")];
  const shown = sides.map(({ name, contentWindow: { location } }) => [name, location.pathname + location.search]);
  const query = `?${new URLSearchParams(shown)}`;
  if (shown.every(([, address]) => address !== "blank") && query !== location.search) history.replaceState(null, "", query);
  const isDark = (page) => page.body.classList.contains("body--dark");
  for (const { contentWindow: side } of sides)
    if (side.emitEvent && side.document.body && isDark(side.document) !== isDark(document)) side.emitEvent("lab_theme", isDark(document));
}, 500);
