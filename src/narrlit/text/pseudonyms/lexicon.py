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
    "anybody anyone anything everybody everyone everything he her hers herself him himself his i it its itself me "
    "mine my myself nobody none nothing one ones our ours ourselves she somebody someone something that their theirs "
    "them themselves these they this those us we what which who whom whose you your yours yourself yourselves"
)

FUNCTION = PRONOUNS | word_set(
    "a aboard about above according across after afterward afterwards again against ago ah ain't alas all almost "
    "along alongside already also although always am amid amidst among amongst an and another any apart are aren't "
    "around as at atop away back be because been before behind being below beside besides between beyond both but by "
    "can can't cannot concerning could couldn't despite did didn't do does doesn't doing don't done down dozens due "
    "during e.g each eight eighteen eighty either eleven else etc even eventually ever every except few fifteen fifty "
    "finally first five following for forty four fourteen from furthermore had hadn't half has hasn't have haven't "
    "having hello hence here hereafter hey hi how however hundred hundreds i.e if in including indeed inside instead "
    "into is isn't just last later let's like many maybe meanwhile might million millions more moreover most much "
    "must mustn't near neither never nevertheless next nine nineteen ninety no nonetheless nor not now of off often "
    "oh ok okay on once only onto or other others otherwise ought out outside over own p.s past per perhaps please "
    "plus quite rather regarding same second seven seventeen seventy several shall should shouldn't since six sixteen "
    "sixty so some sometimes soon still such ten than thanks the then there thereafter therefore thereupon third "
    "thirteen thirty though thousand thousands three through throughout thus to today together tomorrow tonight too "
    "toward towards twelve twenty twice two under underneath unless unlike until up upon very via vs was wasn't well "
    "were weren't whatever when whenever where whereupon wherever whether whichever while whilst whoever why with "
    "within without won't would wouldn't yes yesterday yet"
)
"""Never a name, and no part of one; "The" of "The Hague" stays in the text."""

COMMON = word_set(
    "able aboard absent abuse accompanied action adapted adolescence adultery adventure afraid age agents aggression "
    "alcoholism aliens alive alone amazed amnesia anarchy angry angst animals another anxious applause aristocracy "
    "armed army arrested art ashamed asleep attempts author autumn awake aware baby bad ballet bank bankruptcy based "
    "beat beaten beautiful becoming beer believing best betrayal betrayed better big bitter black blackmail blame "
    "blind blood bloodshed blue bodies book books bored boredom born bound boy boys brave bread bright british broken "
    "brothers brought business busy candour captured careful caring cars cast caught certain chance chaos chapter "
    "chapters childhood children christmas city civil clean clearly clever climate climbing close clouds clues cold "
    "college comedy coming communication complications concerned conflict confusion consumed contact content "
    "convinced corrupt country couples courage crazy crew crime critics crowds cruel cultural culture curiosity "
    "curious customs cut daily damn dare dark daughter dawn day daylight days dead deadly dear death debt decades "
    "deep defeated defence defense deprived desire despair desperate destiny detectives determined devastated devoted "
    "different dinner disappointed disaster discovery disgraced disguised disgusted dismayed distant distraught "
    "divorce doctors dogs doubt dozens drama drawn dread dreams dressed driven driver drugs drunk dust eager early "
    "earth east easter education eighties elderly elsewhere enemies engaged enough enraged enter entire envy epilogue "
    "episode escape especially eternal events everyday everything's evidence evil exactly excerpt exhausted "
    "experience expert exterior extra eyes faced fact faith fame families family famous fans far farmers fascinated "
    "fate father fear fearful fearless fed feeling female few fiction fierce fifties fight filled film final finance "
    "fire flash flashback flashbacks flight fog food footage forced foreign former forties fortunately fortune forty "
    "found fourth framed free freedom fresh friday friendly friends friendship frightened frost fueled fuelled full "
    "full-time furious future game gangs general generations gentle ghosts girl girls given glad god gold golden gone "
    "good gossip grace gradually grand grass gravely great greed green grief ground group growing grown guards guilt "
    "guilty half hands handsome happiness happy hard harvest hatred head health heartbreak heartbroken heartless heat "
    "heaven hell help heroes hidden high history holy home homicide honest honor honour hope horrified horror "
    "hostages hostility hot hours house human humanity humans humiliated hunger hungry hunters husband ice ill "
    "illegal imagine impressed incense incest independence independent information informed inner innocent insane "
    "insanity inside inspired intelligence interest interior interviews intrigued introducing iron jealous jealousy "
    "joined journalist joy joyful justice kept key kidnapped kind king knights knowing knowledge land large late "
    "laughter law lawyers leaders least left legend legendary less letters lies life light lightning limited "
    "literature little local loneliness lonely long lost lots love low loyal luck luckily lucky lunatics mad made "
    "madness magic main male man mankind marital mark marriage married master may medical medieval members memories "
    "men mercy mice middle midnight minutes miracles misery misfortune missing mist mistaken misunderstandings "
    "mobsters modern moments money months moon morning moss mother mother's mountain moved movie movies moving murder "
    "murders music mysterious mystery naked narrative narrator nature naval nazi near nearly needless neighbors new "
    "news night nightfall nights nineties nobility noble none north nostalgia novel nuclear number obsessed occupied "
    "officers official oil old older open opening opera order ordinary orphaned over overall overcome panic paper "
    "paradise parents part part-time parts party passengers passion past patients peace penniless people perfect "
    "persuaded phone physical pilot pirates pity plagued play plot plot's police politicians politics poor possibly "
    "post poverty power powerless predictably pregnant present pretty previous pride prisoners private problems "
    "production profit progress prologue prompted proof protagonist protests proud psychic puberty public pure purely "
    "queen quick quickly quiet race rage rain raised rare raw readers realism reality rebels recently records "
    "recovered red refugees relations relationships released relieved reluctant remorse rescue rescued residents "
    "resistance returning revenge reviewer reviewers rich right rival road robbers robots rock romance rose rough "
    "royal ruined rumors rumour rumours rural rust ruthless sad saddened safe sailors saved scared scene scenes "
    "school scientific scientists season seasons secrecy secret secrets security seduced sensing sentenced series set "
    "settlers seventies sex shame ships shocked short shot shots sick side sights silence silk similar simply sin "
    "single sir sister six sixties skilled slaves sleep slow small smart smitten smoke snow so-called social society "
    "soldiers solitary somehow son soon sorrow south space spies spirits spiritual spring spy staff stage stars "
    "starving steam steel still stolen stories story strange strong struck stuck students stunned subplots success "
    "such sudden suicide summer sun sunrise sunset supernatural sure surprised survivors suspecting suspense "
    "suspicion suspicions suspicious sweet synopsis taken tale tales teachers teenagers telling temptation tempted "
    "tension tensions terrified terror terrorists thanks that's themes thieves thirties thirty thoughts thrown "
    "thunder time times tired told tomb torn torture touched tourists townspeople trade traffic tragedy tragically "
    "trained trapped travel travelers travellers treachery treason treasure treasury treated trial trials tribal "
    "trilogy troops trouble troubled true trust truth twenties twenty twin twins tyranny ultimately unable unaware "
    "unbeknown unbeknownst undercover uneasy unemployed unfaithful unfortunate unhappy united unknown unsatisfied "
    "unwilling upon upset urban used vampires vengeance vice victims victory video village villagers violence virtual "
    "vivid voice voices volume war warned warriors water weak wealth wealthy wedding weeks west what's white who's "
    "widowed wild will wind wine winter wisdom witches woken wolves women wonder words work workers world worried "
    "worse wounded wrath writer wrong years yellow young younger youth zombies"
)
"""A capital at the beginning of a sentence says nothing about these, nor that of an epithet behind "the"."""

NAMES_TOO = word_set(
    "abbot amber angel art autumn baby baker banks bear bell bill bishop black bob brown captain chance charity "
    "church constance cook crystal dawn destiny dick dot drew faith felicity field forest fox frank gene grace gray "
    "green grey guy harmony hill holiday honor honour hope hunter iris ivy jack jade joy king knight lake lily long "
    "love lucky mark may melody mercy miller moon park pat patience pearl pope prince prudence rain rich rivers rob "
    "rock rose ruby sky small snow star stone storm sue summer sunny trinity verity walls white will winter wolf wood "
    "woods young"
)
"""Words that are persons' names as well, where a capital within a sentence says so."""

CALENDAR = word_set(
    "april august christmas december easter february friday fridays halloween hanukkah january july june march "
    "midsummer monday mondays new-year november october passover ramadan saturday saturdays september sunday sundays "
    "thanksgiving thursday thursdays tuesday tuesdays wednesday wednesdays"
)

STAYING = CALENDAR | word_set(
    "a.d a.m act ad ai aids allies am atlantic-crossing atm axis b.c bc bce bible blitz book cd ce ceo cfo chapter "
    "depression devil diy dj dna dragon dragons dvd earthling earthlings east eastern edwardian emmy enlightenment "
    "episode eu fm gestapo god goddess gods gothic gps heaven hell hiv holocaust id inquisition internet iq it jedi "
    "koran lord lsd m.d mafia martian martians md medieval mob mr mrs nazis ninja north northeast northern northwest "
    "ok oscar p.m part pc ph.d phd pm pow pows quran reformation reich renaissance rv samurai santa satan scene "
    "sci-fi season shogun sos south southeast southern southwest sunday-school suv torah triads tv ufo ufos us "
    "vampire vampires vhs victorian vip volume web werewolf west western witch ww1 ww2 wwi wwii yakuza zombie zombies"
)
"""Capitalised though they name no person, place or body of a story: they tell a time, a belief or a thing."""

TITLES = word_set(
    "abbess abbot adm admiral agent agents ambassador archbishop attorney aunt auntie aunts baron baroness barons "
    "begum bishop brigadier brother cadet caliph capt captain captains cardinal chairman chancellor chaplain chief "
    "cmdr coach col colonel commander commissioner commodore comrade congressman congressperson congresswoman "
    "constable corporal councillor count countess cousin cpl crown czar dame deacon deputy det detective detectives "
    "director district doctor doctors dr duchess duke earl emir emperor empress ensign ex-president father first fr "
    "frau fraulein friar fräulein gen general gov governor grandfather grandma grandmother grandpa granny guru herr "
    "high hon imam insp inspector inspectors judge justice khan king kings lady lieutenant lieutenant-colonel lord "
    "lords lt madame mademoiselle maharaja maj major mama marchioness marquess marquis marshal master mayor messrs "
    "minister miss mistress mlle mme monk monsieur monsignor mother mr mrs ms msgr mx nurse officer officers papa "
    "pastor pharaoh police pope pres president press prime prince princes princess private prof professor professors "
    "pvt queen queens rabbi raja rajah regent representative rev reverend sahib secretary sen senator senor senora "
    "senorita sensei sergeant sergeants señor señora señorita sgt shah sheikh sheriff shri signor signora signorina "
    "sir sirs sister special squire sri sultan superintendent supreme supt swami thakur tsar tsarina uncle uncles "
    "vicar vice vice-president viscount viscountess warden"
)
"""Stand before a person's name, and in the text they stay; alone they name an office."""

WEAK_TITLES = word_set(
    "brother captain chief county court crown district father first general high justice king lady lord major master "
    "mother police president press prime prince princess private queen royal sister special supreme vice"
)
"""Titles that also begin the names of places and bodies: Police Department, Queen Street."""

ABBREVIATED = word_set(
    "adm capt cmdr col cpl det dr fr ft gen gov hon insp jr lt maj messrs mlle mme mr mrs ms msgr mt mx pres prof pvt "
    "rep rev sen sgt sr st supt"
)
"""Carry a full stop that ends no sentence."""

PARTICLES = word_set(
    "af al av ben bin bint d da das de degli dei del della den der des di dos du el ibn la le of-the te ten ter van "
    "von y zu zum"
)
"""Lower-case words in the middle of a name: Ludwig van Beethoven, Charles de Gaulle."""

PREFIXES = word_set("all anti co ex former half mid mini neo non once post pre pro self semi sub then ultra un")
"""Before a hyphen these are no part of the name after it: ex-Marine, anti-Semitic."""

LIKE = word_set("area backed based born bound era held led like made owned run sized speaking style turned type wide")
"""After a hyphen these are no part of the name before it: Texas-based; nor are words in -ed and -ing."""
