"""Words of English stories by what they say about the capitalised words beside them; lower case, unless it says so."""


def word_set(words: str) -> frozenset[str]:
    """The words; a plus sign stands for the space inside a name.

    >>> sorted(word_set("new+york paris"))
    ['new york', 'paris']
    """
    return frozenset(word.replace("+", " ") for word in words.split())


def inflected(bases: str) -> frozenset[str]:
    """Third person and regular past of verbs, with the last letter doubled, too.

    >>> sorted(inflected("marry")), sorted(inflected("stop"))
    (['married', 'marries'], ['stoped', 'stopped', 'stops'])
    """
    forms = set()
    for base in bases.split():
        if base.endswith("y") and base[-2] not in "aeiou":
            forms |= {base[:-1] + "ies", base[:-1] + "ied"}
        elif base.endswith(("s", "x", "z", "ch", "sh", "o")):
            forms |= {base + "es", base + "ed"}
        else:
            forms |= {base + "s", base + ("d" if base.endswith("e") else "ed"), base + base[-1] + "ed"}
    return frozenset(forms)


PRONOUNS = word_set(
    "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs myself yourself "
    "himself herself itself ourselves yourselves themselves who whom whose which what this that these those someone "
    "somebody something anyone anybody anything everyone everybody everything nobody nothing none one ones"
)

FUNCTION = PRONOUNS | word_set(
    "a an the and or but nor so yet for if then else when while where why how whether because since although though "
    "unless until as than like in on at by to from of off out into onto upon over under above below between among "
    "amongst through throughout during before after against about around across along behind beside besides beyond "
    "despite down except inside near outside past per plus toward towards underneath unlike up via with within without "
    "am is are was were be been being do does did done doing have has had having would shall should can could might "
    "must ought cannot not no yes all any both each either every few many more most much neither other others another "
    "several some such own same too very just only even also still again ever never always often sometimes once twice "
    "here there now today tonight tomorrow yesterday soon later meanwhile afterwards afterward eventually finally "
    "instead however moreover furthermore nevertheless nonetheless therefore thus hence otherwise perhaps maybe almost "
    "already back away together apart ago first second third next last two three four five six seven eight nine ten "
    "eleven twelve twenty thirty forty fifty hundred thousand million half due according rather quite indeed whenever "
    "wherever whatever whoever whichever ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't "
    "let's mustn't shouldn't wasn't weren't won't wouldn't oh ah hey hello hi please thanks ok okay alas well p.s vs etc "
    "thereafter thereupon whereupon hereafter i.e e.g nineteen eighteen thirteen fourteen fifteen sixteen seventeen sixty seventy eighty ninety dozens thousands "
    "millions hundreds thanks whilst amid amidst aboard atop alongside concerning regarding following including"
)
"""Never a name, and no part of one; "The" of "The Hague" stays in the text."""

COMMON = word_set(
    "able absent phone undercover literature music law independence resistance customs aggression realism physical twenties thirties forties fifties sixties seventies eighties nineties "
    "truth dare heat game opening staff medical absent abuse action adapted adventure age agents alone angry another anxious army art aliens animals attempts "
    "bad bank based baby beautiful becoming believing best better big black blind blood blue bodies boy boys bound "
    "brave bright british broken business careful caught cast chaos chapter chapters childhood children city clearly "
    "climate clever close clues cold college coming communication complications conflict contact corrupt country "
    "couples crazy crime cruel cut dark day days dead dear death deep desperate destiny different disaster disguised "
    "distraught doctors dogs dreams drugs drunk early earth elderly elsewhere enemies enough enter episode especially "
    "events evidence evil excerpt extra faced faith fame family famous fans far fate father fear fed fearful fearless "
    "feeling few fiction fight film filled final fire flash flashback flashbacks food forced fortunately free freedom "
    "fresh friday friends friendship frightened full furious future girl girls given glad god gold golden good great "
    "greed green grown guards guilt guilty half handsome happiness happy hard hatred heartbroken heartbreak help high "
    "history homicide honest hope hot hours house human humans humanity husband ill illegal independent innocent "
    "intrigued jealous jealousy journalist joy justice kept key kidnapped kind king knowing knowledge large late left "
    "legend less life light little local lonely long lost love low luckily lucky lunatics madness made magic man mark "
    "marriage may memories men mercy middle midnight minutes misery misfortune missing modern money months moments "
    "morning mother mother's moving murder murders music mysterious near needless neighbors new news night nights "
    "noble none nuclear number obsessed old older orphaned overall over panic part parts party passion past peace "
    "people plagued plot plot's police poor poverty power powerless pregnant present pride problems prologue epilogue "
    "proud public quick quickly quiet race rain reality recently records red relations relationships rescue residents "
    "revenge rich right robots rock romance rose rumors rumours sad scared school scientists scene scenes security set "
    "sex shocked short sick silence similar single sister small snow society soldiers son soon space spring stars story "
    "stories strange strong students success such sudden summer surprised survivors suspense suspicion suspicions "
    "suspicious sure synopsis tension tensions terrified terror thieves time times torn townspeople tragedy tragically "
    "travel treasure treasury trouble troubled true trust truth twin twins ultimately unable unaware unbeknown "
    "unbeknownst unhappy unknown upset upon vampires victims vice video villagers violence voice voices war water weak "
    "wealthy weeks white wild will winter witches women words work workers world worse writer years yellow young "
    "younger youth zombies angst armed autumn beat beaten bitter blame born bored brothers busy caring cars "
    "certain chance christmas civil clean climbing clouds comedy concerned consumed content convinced courage "
    "crew crowds cultural curious curiosity daily damn daylight daughter dawn deadly debt desire despair detectives "
    "devastated devoted dinner disappointed discovery distant doubt dozens drama dressed driven driver east easter "
    "education engaged entire escape eternal everyday exactly exhausted experience expert eyes fact families farmers "
    "fierce flight footage foreign former forty found fourth framed gangs general generations gentle ghosts gone gossip "
    "gradually grace grand grief gravely ground group growing hands head health heartless heaven hell heroes hidden "
    "holy home horrified horror hostages hungry hunters ice imagine impressed incest information inner insane insanity "
    "inspired intelligence interest interviews introducing joined joyful knights land lawyers leaders least legendary "
    "letters lies limited lots loyal luck mad main male female mankind marital married master medieval members mice "
    "miracles mistaken mobsters moon mountain nature nazi naval naked narrator nearly nights north south west occupied "
    "officers official oil open order ordinary paradise parents passengers patients penniless perfect physical pirates "
    "politicians politics possibly post predictably pretty previous prisoners private production prompted protagonist "
    "protests psychic pure purely queen rage rare raw rebels recovered refugees reluctant remorse rescued returning "
    "rival road robbers rough royal ruined rural ruthless safe sailors saved scientific secret secrets sensing series "
    "set settlers shame ships shots side sights simply sin sir six skilled slaves slow smart smitten so-called social "
    "solitary somehow spies spirits spiritual spy stage starving still stolen stuck stunned subplots suicide "
    "sun supernatural sweet tales taken teachers teenagers telling terrorists themes thirty thoughts tired told tomb "
    "touched tourists trapped travellers travelers trial trials troops tribal twenty unemployed unfaithful uneasy united "
    "urban used vengeance victory village virtual vivid warriors wedding widowed wounded wolves wonder worried "
    "wrong accompanied amazed arrested ashamed betrayed brought captured decades defeated deprived determined "
    "disgraced disgusted dismayed drawn enraged fascinated fuelled fueled humiliated informed inside moved overcome "
    "persuaded raised relieved released saddened seduced shot struck sentenced suspecting tempted thrown thanks treated "
    "trained unsatisfied unfortunate unwilling warned woken anarchy afraid aware eager aboard alive asleep awake "
    "betrayal bloodshed blackmail panic puberty confusion temptation friendly hostility hunger nightfall sunrise sunset "
    "amnesia adolescence childhood nobility aristocracy adultery alcoholism bankruptcy boredom divorce loneliness "
    "misunderstandings mystery nostalgia secrecy sorrow torture treachery treason tyranny victory wealth wisdom "
    "interior defence defense culture finance exterior fog mist dust smoke steam rust frost thunder lightning sleep "
    "laughter applause grass moss silk wine beer bread iron steel dread incense profit fortune honour honor candour pity "
    "envy wrath wind harvest progress trade traffic paper proof rumour everything's what's who's that's part-time full-time narrative reviewer reviewers critics readers author novel book "
    "books play movie movies opera ballet pilot season seasons tale trilogy volume"
)
"""A capital at the beginning of a sentence says nothing about these, nor that of an epithet behind "the"."""

NAMES_TOO = word_set(
    "mark will grace faith hope joy rose art may dawn summer autumn winter star angel rich destiny harmony chance frank "
    "bill jack guy pat drew king prince black white green brown young small long love storm rock lucky sunny baby "
    "captain hunter baker miller cook knight bishop pope abbot park wood woods hill banks rivers lake church bell grey "
    "gray walls stone field forest bear wolf fox dick bob rob sue dot gene iris ivy lily pearl ruby amber crystal jade "
    "melody patience constance prudence honor honour mercy charity felicity verity trinity moon sky rain snow holiday"
)
"""Words that are persons' names as well, where a capital within a sentence says so."""

CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september "
    "october november december christmas easter halloween thanksgiving ramadan hanukkah passover midsummer new-year "
    "mondays tuesdays wednesdays thursdays fridays saturdays sundays"
)

STAYING = CALENDAR | word_set(
    "tv dvd cd vhs pc dna ai iq id ceo cfo ufo ufos aids hiv vip lsd suv pow pows mr mrs ok phd md am pm bc ad bce ce "
    "ww1 ww2 wwi wwii god gods goddess lord heaven hell bible koran quran torah satan devil internet web oscar emmy "
    "north south east west northern southern eastern western northeast northwest southeast southwest mafia mob "
    "medieval renaissance victorian edwardian enlightenment reformation inquisition holocaust blitz depression gothic "
    "gestapo yakuza triads ninja samurai shogun jedi sunday-school atlantic-crossing eu nazis reich allies axis "
    "chapter part book volume episode act scene season earthling earthlings martian martians vampire vampires zombie "
    "zombies werewolf witch dragon dragons santa sci-fi m.d ph.d b.c a.d a.m p.m sos diy it us rv atm gps fm dj"
)
"""Capitalised though they name no person, place or body of a story: they tell a time, a belief or a thing."""

TITLES = word_set(
    "mr mrs ms mx miss dr prof professor doctor rev reverend fr father mother sister brother sir dame lord lady lords "
    "king queen prince princess duke duchess count countess baron baroness earl marquis marquess marchioness viscount "
    "viscountess emperor empress tsar czar tsarina sultan shah khan pharaoh maharaja rajah raja sheikh emir caliph pope "
    "cardinal archbishop bishop abbot abbess friar monk rabbi imam pastor deacon vicar captain capt colonel col major "
    "general gen lieutenant lt sergeant sgt corporal cpl private pvt admiral adm commander cmdr commodore marshal "
    "sheriff deputy constable inspector insp detective det agent officer superintendent supt commissioner chief judge "
    "justice attorney senator sen governor gov president pres vice minister chancellor ambassador secretary mayor "
    "congressman congresswoman councillor chairman director coach nurse cadet uncle aunt auntie grandma grandpa "
    "grandfather grandmother granny cousin monsieur madame mademoiselle mme mlle signor signora signorina señor señora "
    "señorita senor senora senorita herr frau fräulein fraulein comrade master mistress hon squire prime first "
    "brigadier ensign warden chaplain crown regent press police mama papa messrs msgr monsignor maj professors sirs "
    "doctors captains kings queens princes barons detectives agents officers sergeants inspectors uncles aunts "
    "lieutenant-colonel vice-president ex-president guru swami thakur begum sahib sri shri sensei special district "
    "supreme high representative congressperson"
)
"""Stand before a person's name, and in the text they stay; alone they name an office."""

WEAK_TITLES = word_set(
    "police press crown district high supreme special general first prime vice chief major father mother sister brother "
    "king queen prince princess court master crown royal lord lady private county justice president captain"
)
"""Titles that also begin the names of places and bodies: Police Department, Queen Street."""

ABBREVIATED = word_set(
    "mr mrs ms mx dr prof rev fr hon gen col maj capt cmdr lt sgt cpl pvt adm gov sen rep pres supt insp det msgr st "
    "mme mlle mt ft jr sr messrs"
)
"""Carry a full stop that ends no sentence."""

PARTICLES = word_set(
    "de van von der den ter ten la le du di da dos das del della della dei degli al el bin ibn ben bint zu zum af av y "
    "des d of-the te"
)
"""Lower-case words in the middle of a name: Ludwig van Beethoven, Charles de Gaulle."""

PREFIXES = word_set("ex anti pre post non mid pro neo half co all self sub un semi mini ultra former then once")
"""Before a hyphen these are no part of the name after it: ex-Marine, anti-Semitic."""

LIKE = word_set(
    "based born bound style era like wide sized led run backed held owned speaking wide area type turned made"
)
"""After a hyphen these are no part of the name before it: Texas-based; nor are words in -ed and -ing."""
