"""Words that tell whether the stop after or before them ends a sentence; each written without its last stop."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


TITLES = _set(
    "Mr Mrs Ms Mx Dr Prof Rev Fr Hon Gen Col Maj Capt Cmdr Lt Sgt Cpl Pvt Adm Gov Sen Rep Pres Supt Insp Det Msgr "
    "Messrs Mme Mlle Mt Ft"
)
"""A name follows; in capitals ("MR. SMITH") they are titles, too."""

LINKS = _set("e.g i.e eg ie vs v cf viz")
"""Whatever follows belongs to the same sentence; in any case."""

COUNTED = _set("No Nos nos Vol vol Op Fig Ch Pt Ep p pp c ca approx Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec")
"""A number that follows belongs to the same sentence, anything else does not."""

CLOSING = _set("Jr Sr Esq Inc Ltd Co Corp Bros St Ave Blvd Rd al")
"""Stand in the middle of a name as well as at its end; the next word decides. "St." is a saint or a street."""

STARTERS = _set(
    "A After All Although An And Another As At Back Because Before Both But By Despite During Each Eventually Every "
    "Everyone Finally For From He Her Here His How However I If In Instead It Its Later Many Meanwhile Most My No Not "
    "Now Of On Once One Or Our She Since So Some Soon Suddenly That The Their Then There These They This Those Though "
    "Through To Two Under Unfortunately Until Upon We What When Where Which While Who Why With Without Yet You Your"
)
"""Capitalised, these begin a sentence rather than belong to a name."""

TIMES = _set("a.m p.m A.M P.M")

DAYS = _set(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Eastern Central Pacific Greenwich EST EDT CST PST GMT UTC"
)
"""Follow a time of day within its sentence: "5 p.m. Eastern"."""

SPEECH = _set(
    "added agreed answers answered asks asked begs begged calls called cries cried demands demanded exclaims exclaimed "
    "jokes mutters muttered replies replied says said screams screamed shouts shouted sobs thinks thought warns warned "
    "whispers whispered wonders wondered yells yelled"
)
"""Tell who spoke the quotation before them."""
