// Glue between Bokeh's plot and the rest of the page.
(() => {
  const begin = () => {
    const page = Bokeh.documents[0];
    const root = [...Bokeh.index.roots][0];
    if (!page?.is_idle || !root?.frame) return setTimeout(begin, 50);
    const model = (name) => page.get_model_by_name(name);
    const [points, names, lines, ring] = ["points", "names", "lines", "ring"].map(model);
    const [x, y] = [points.data.x, points.data.y];
    points.data = {
      ...points.data,
      title: data.stories.map((_, story) => label(story)),
      beginning: data.stories.map((story) => story.title ? story.text.join(" ").slice(0, 180) + "…" : ""),
    };
    const plot = root.model;
    plot.on_event("tap", (event) => {
      // Nearest point within a finger's breadth.
      const [sx, sy] = [root.frame.x_scale.compute(event.x), root.frame.y_scale.compute(event.y)];
      let [best, least] = [-1, 20 ** 2];
      for (let at = 0; at < x.length; at += 1) {
        const distance = (root.frame.x_scale.compute(x[at]) - sx) ** 2 + (root.frame.y_scale.compute(y[at]) - sy) ** 2;
        if (distance < least) [best, least] = [at, distance];
      }
      if (best >= 0) choose(best);
    });
    // Names of groups, the largest first, as long as they cover no other.
    const place = () => {
      const [boxes, shown, { left, right }] = [[], { x: [], y: [], text: [] }, root.frame.bbox];
      const [across, up] = [plot.x_range, plot.y_range];
      for (const { x, y, name } of data.names) {
        const half = 4.1 * name.length;
        const sx = Math.min(right - half, Math.max(left + half, root.frame.x_scale.compute(x)));
        const sy = root.frame.y_scale.compute(y);
        const inside = x > across.start && x < across.end && y > up.start && y < up.end;
        if (!inside || boxes.some(([bx, by, bh]) => Math.abs(bx - sx) < bh + half && Math.abs(by - sy) < 24)) continue;
        boxes.push([sx, sy, half]);
        shown.x.push(root.frame.x_scale.invert(sx));
        shown.y.push(y);
        shown.text.push(name);
      }
      names.data = shown;
    };
    let waiting;
    const later = () => {
      clearTimeout(waiting);
      waiting = setTimeout(place, 120);
    };
    for (const range of [plot.x_range, plot.y_range]) range.change.connect(later);
    addEventListener("resize", later);
    let colors = [];
    start({
      color(all) {
        colors = all;
        points.data = { ...points.data, color: all };
        later();
      },
      mark(story) {
        ring.data = { x: [x[story]], y: [y[story]] };
        lines.data = { x0: data.near[story].map(() => x[story]), y0: data.near[story].map(() => y[story]),
          x1: data.near[story].map((near) => x[near]), y1: data.near[story].map((near) => y[near]) };
      },
      match(stories) {
        const matching = new Set(stories ?? []);
        points.data = { ...points.data, color: stories === null ? colors : colors.map((color, at) => (matching.has(at) ? "#d55e00" : "#e6e8eb")) };
      },
    });
  };
  begin();
})();
