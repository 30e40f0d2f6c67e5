// The address holds what both sides show.
setInterval(() => {
  const sides = [...document.querySelectorAll(".lab-sides iframe")].map((side) => {
    const { pathname, search } = side.contentWindow.location;
    return [side.name, pathname + search];
  });
  const query = `?${new URLSearchParams(sides)}`;
  if (sides.every(([, address]) => address !== "blank") && query !== location.search) history.replaceState(null, "", query);
}, 500);
