// Arrangement of two texts in rows: links that follow the order of both have a row each.

/**
 * Arrange passages in rows.
 *
 * Returns rows {link, sides}: a link or null, and the passages of each side, {number, links}, where `links` are those
 * without a row of their own.
 */
export function parallelRows(leftCount, rightCount, links) {
  const ordered = inOrder(links);
  const others = links.filter((link) => !ordered.includes(link));
  const cells = (side, from, to) => Array.from({ length: to - from }, (_, place) => {
    const number = from + place;
    return { number, links: others.filter((link) => link[side] === number) };
  });
  const rows = [];
  let [left, right] = [0, 0];
  for (const link of ordered) {
    rows.push({ link: null, sides: [cells("left", left, link.left), cells("right", right, link.right)] });
    rows.push({ link, sides: [cells("left", link.left, link.left + 1), cells("right", link.right, link.right + 1)] });
    [left, right] = [link.left + 1, link.right + 1];
  }
  rows.push({ link: null, sides: [cells("left", left, leftCount), cells("right", right, rightCount)] });
  return rows.filter((row) => row.sides.some((side) => side.length > 0));
}

/** Choose the links with the largest sum of shares of which none crosses another. */
export function inOrder(links) {
  const sorted = [...links].sort((a, b) => a.left - b.left || a.right - b.right);
  const best = [];
  sorted.forEach((link, place) => {
    const before = sorted.slice(0, place).map((other, at) => (other.left < link.left && other.right < link.right ? at : -1));
    const previous = before.filter((at) => at >= 0).reduce((most, at) => (most < 0 || best[at].sum > best[most].sum ? at : most), -1);
    best.push({ sum: link.share + (previous < 0 ? 0 : best[previous].sum), previous });
  });
  let place = best.reduce((most, each, at) => (most < 0 || each.sum > best[most].sum ? at : most), -1);
  const chosen = [];
  for (; place >= 0; place = best[place].previous) chosen.unshift(sorted[place]);
  return chosen;
}
