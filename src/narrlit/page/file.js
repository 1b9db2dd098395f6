// The page of a file: its views take their answers from the file itself.

import { address } from "./address.js";
import { carried } from "./carried.js";
import { startPage } from "./frame.js";
import { number, t, useTexts } from "./texts.js";
import { agreementView } from "./views/agreement.js";
import { compareView } from "./views/compare.js";
import { groupsView } from "./views/groups.js";
import { mapView } from "./views/map.js";
import { reportView } from "./views/report.js";
import { storyView } from "./views/story.js";

const VIEWS = {
  map: mapView,
  story: storyView,
  compare: compareView,
  groups: groupsView,
  agreement: agreementView,
  report: reportView,
};
const LINKS = [["map", "nav.map"], ["groups", "nav.groups"], ["agreement", "nav.agreement"]];
const ANSWER_OF = { groups: "retellings" };

useTexts(carried.texts);
startPage({
  settings: {},
  views: VIEWS,
  links: LINKS.filter(([name]) => (ANSWER_OF[name] ?? name) in carried.answers),
  first: address(carried.collection.name, carried.view, carried.ids),
  footer: [t("footer.file", { made: carried.made }), carried.cut ? t("footer.cut", { n: number(carried.cut) }) : ""].join(" "),
});
