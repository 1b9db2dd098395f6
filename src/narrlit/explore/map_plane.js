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
      const boxes = [];
      const text = data.names.map((group) => {
        const [sx, sy] = [root.frame.x_scale.compute(group.x), root.frame.y_scale.compute(group.y)];
        const half = 3.6 * group.name.length;
        const [from, to] = [root.frame.x_range, root.frame.y_range];
        const inside = group.x > from.min && group.x < from.max && group.y > to.min && group.y < to.max;
        const free = boxes.every(([bx, by, bh]) => Math.abs(bx - sx) > bh + half || Math.abs(by - sy) > 18);
        if (!inside || !free) return "";
        boxes.push([sx, sy, half]);
        return group.name;
      });
      if (text.some((name, at) => name !== names.data.text[at])) names.data = { ...names.data, text };
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
