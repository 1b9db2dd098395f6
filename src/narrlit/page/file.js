// The page of a file: its views take their answers from the file itself.

import { address } from "./address.js";
import { carried } from "./carried.js";
import { startPage } from "./frame.js";
import { number, t, useTexts } from "./texts.js";
import { agreementView } from "./views/agreement.js";
import { compareView } from "./views/compare.js";
import { mapView } from "./views/map.js";
import { reportView } from "./views/report.js";
import { storyView } from "./views/story.js";

const VIEWS = { map: mapView, story: storyView, compare: compareView, agreement: agreementView, report: reportView };
const LINKS = [["map", "nav.map"], ["agreement", "nav.agreement"]];

useTexts(carried.texts);
startPage({
  settings: {},
  views: VIEWS,
  links: LINKS.filter(([name]) => name in carried.answers),
  first: address(carried.collection.name, carried.view, carried.ids),
  footer: [t("footer.file", { made: carried.made }), carried.cut ? t("footer.cut", { n: number(carried.cut) }) : ""].join(" "),
});
