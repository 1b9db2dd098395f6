"""Nouns and verbs that tell a person, a place or a body from each other; lower case."""

from narrlit.text.pseudonyms.gazetteer import GIVEN
from narrlit.text.pseudonyms.lexicon import TITLES, inflected, word_set

PERSONS = TITLES | word_set(
    "accomplice accountant activist actor actress addict adventurer agent alcoholic alien ally ambassador android "
    "antagonist apprentice archaeologist aristocrat artist assassin assistant astronaut athlete attorney aunt author "
    "aviator baby baker bandit banker barmaid bartender bear beggar best-friend billionaire biologist bishop "
    "blacksmith bodyguard bookmaker boss boxer boy boyfriend bride broker brother brother-in-law burglar businessman "
    "businesswoman butcher butler captain caretaker carpenter cat champion character chauffeur chef chemist chief "
    "chieftain child classmate clerk co-worker coach colleague colonel colonist commander composer comrade con-man "
    "con-woman concierge conman convict cook cop counsellor counselor count countess courier cousin cowboy coworker "
    "criminal crook dad dancer daughter dealer dean dentist detective diplomat director disciple doctor dog dragon "
    "drifter driver drunk duke editor electrician emperor employee employer enemy engineer executive explorer farmer "
    "father father-in-law fellow feminist fiance fiancee fiancé fiancée filmmaker firefighter fireman fisherman "
    "flatmate follower footballer foreigner friend gambler gangster gardener general gentleman geologist ghost girl "
    "girlfriend governess granddaughter grandfather grandmother grandson grifter groom guard guardian guide gunman "
    "guy hacker half-brother half-sister handyman headmaster heir heiress henchman hermit hero heroine historian "
    "hitman horse housekeeper hunter husband hypnotist immigrant industrialist informant inmate innkeeper inspector "
    "instructor inventor investigator investor jailer janitor jockey journalist judge kid killer king knight lad lady "
    "landlady landlord landowner lass lawman lawyer leader librarian lieutenant lodger lord lover magician maid man "
    "manager marshal master mathematician mayor mechanic men mentor mercenary merchant messenger miller millionaire "
    "miner minister mistress mobster model mom monk monkey monster mother mother-in-law mouse mum murderer musician "
    "nanny narrator neighbor neighbour nephew niece nobleman notary novelist nun nurse officer orderly orphan outlaw "
    "owner painter paramedic parent parrot partner pastor patient peasant people person philosopher photographer "
    "physician physicist pianist pilot pimp pirate player playwright plumber poet policeman policewoman politician "
    "president priest prince princess principal prisoner producer professor programmer prophet prosecutor prostitute "
    "protagonist protege protégé psychiatrist psychologist pupil queen rabbi rabbit rancher refugee reporter "
    "revolutionary ringleader rival robber robot roommate sailor salesman saleswoman samurai scholar schoolmate "
    "scientist screenwriter sculptor secretary senator sergeant servant settler sexologist shepherd sheriff "
    "shopkeeper sibling signaller singer sister sister-in-law smuggler soldier son son-in-law sorcerer sorceress spy "
    "squire stepbrother stepdaughter stepfather stepmother stepsister stepson stranger student surgeon surveyor "
    "survivor suspect swindler tailor teacher teen teenager tenant terrorist therapist thief tourist trader trainer "
    "tramp traveler traveller treasurer twin tycoon uncle vampire veteran victim villain violinist waiter waitress "
    "ward warden warrior widow widow-maker widower wife witch witness wizard wolf woman women worker wrestler writer "
    "youth"
)
"""Say that the name beside them is a person's, or an animal's with a part in the story."""

PLACES = word_set(
    "abbey airport alley apartment archipelago arena asylum avenue bar base basin bay beach bluff bog borough "
    "boulevard bridge building cafe café camp canal canyon cape casino castle cathedral cave caves cemetery channel "
    "chapel church cinema city cliff cliffs club coast colony continent convent cottage country county crater creek "
    "crossing dale deep delta desert district dock docks empire estate falls farm fen field fields fjord ford forest "
    "fort fortress galaxy garden gardens glacier glen graveyard grove gulf hall hamlet harbor harbour haven head "
    "heath heights highway hill hills hollow hospital hotel house inn island islands isle jail junction jungle "
    "kingdom lagoon lake landing lane library lighthouse manor mansion marsh mesa mill mine monastery moon moor mount "
    "mountain mountains museum nation neighborhood neighbourhood oasis ocean outpost palace parish park pass peak "
    "peninsula pier plain plains planet plantation point pond port prison province pub quarter quay rainforest ranch "
    "realm reef region republic restaurant ridge ring river road route ruins saloon savanna sea shire springs square "
    "stadium star state station steppe strait street suburb swamp system tavern temple terrace territory theater "
    "theatre tower town tundra vale valley villa village village-green vineyard ward waterfall wells wharf wood woods "
    "world yard zoo"
)
"""Nouns of places: the last or first word of a place's name, or beside it."""

LONE_HEADS = word_set("camp castle hotel loch planet river villa") | word_set(
    "bir cape el fort isle lake las los mount new port puerto rio saint san santa santo sierra st tel wadi"
)
"""Begin a place's name."""

ORGANISATIONS = word_set(
    "academy administration agency airlines airways alliance army associates association authority band bank "
    "battalion brigade broadcasting bros brotherhood brothers bureau cartel channel choir church circus clan club co "
    "co-operative collective college commission committee company conglomerate congress consortium cooperative corp "
    "corporation corps council court crew cult department division dynamics ensemble enterprise enterprises estates "
    "express family federation films firm fleet force forces foundation foundry freight front fund gang gazette "
    "government group guard guild haulage herald holdings house-of-lords inc industries institute institution "
    "intelligence journal knights laboratories labs league legion limited lines llc ltd mafia magazine media militia "
    "mills mining ministry mob motors movement nations navy network newspaper office orchestra order organisation "
    "organization outfit parliament partners party patrol pictures players police post press productions railroad "
    "railway railways rangers rebels records regiment resistance school sect senate service services shipping "
    "sisterhood society sons squadron studio studios syndicate systems team technologies templars theatricals times "
    "traders trading triad tribe tribune troupe trust union university works"
)
"""Nouns of bodies: the last word of a body's name, or beside it."""

BODY_HEADS = word_set(
    "academy alliance army assembly bank board brotherhood bureau chamber church circle college council court cult "
    "daughters department federation friends guild house institute knights league ministry museum office order party "
    "school sisterhood society sons union university"
)
"""With "of" behind them they begin a body's name: University of X, Knights of the X."""

PLACE_HEADS = word_set(
    "abbey bay bridge cape capital castle cathedral cave caves cities city coast county district duchy empire fields "
    "forest garden gardens gates gulf hall hill hills hotel house island islands isle kingdom lake land mount "
    "mountains oasis outskirts palace plains planet port province republic sea state states strait straits streets "
    "temple tower town valley village well"
)
"""With "of" behind them they begin a place's name: Tower of X, Isle of X."""

EVENTS = word_set(
    "accords age ages agreement battle conference crusade crusades depression era expedition festival incident "
    "massacre olympics protests rebellion revolution siege testament treaty uprising war wars year"
)
"""A name that ends so tells a time: it stays, as "World War II" does; in "Battle of X" X alone is a name."""

GENERIC = (PERSONS | PLACES | ORGANISATIONS | EVENTS) - GIVEN
"""Words that alone name a kind of person or thing, whatever their case: the Ministry, Grandpa."""

OWNED = word_set(
    "apartment bar boat building cafe church club cottage court empire estate farm field fields garden grave hall "
    "head hotel house inn manor mansion mine plantation pub ranch reign restaurant room villa world"
)
"""Places that are as often a person's: "the house of X"."""

MOVING = word_set(
    "arrive arrived arrives brought bus came come comes coming deported door drive drives drove emigrate emigrated "
    "emigrates escape escaped escapes escaping exiled expedition far fled flee fleeing flees flew flies flight fly "
    "flying go goes going gone hail hailing hails head headed heading heads hitchhike hitchhikes journey journeyed "
    "journeys miles move moved moves moving native northward ran relocate relocated relocates return returned "
    "returning returns ride rides road rode run runs sail sailed sailing sails sends sent ship southward straight "
    "taken takes tickets train transferred travel traveled traveling travelled travelling travels trip trips visit "
    "voyage walk walked walks way went"
)
"""Before "to" or "from" they say that a place follows."""

CONFIDING = word_set("believe believed believes confide confided confides faith interest interested love trust trusts")
"""Before "in" they say that a person follows: "confides in X"."""

VERBS = inflected(
    "accept accompany accuse ache act admit adopt advise agree allow announce answer apologise apologize appear "
    "approach argue arrange arrest arrive ask assist assume attack attempt attend attract avoid awaken bake ban "
    "become befriend beg begin believe belong bet betray bite blackmail blame borrow bribe bring build bury buy call "
    "care carry catch cause celebrate challenge chase cheat choose claim climb collapse come comfort commit complain "
    "confess confide confront consider contact continue convince cook counsel cross cry cut dance deal debate deceive "
    "decide declare defeat defend demand deny depart deserve desire despise destroy die disappear discover disguise "
    "dismiss divorce do drag draw dream dress drift drink drive drop drown earn eat elope embark embrace emerge "
    "emigrate employ encounter encourage end endure enjoy enlist enter escape escort establish exact examine exclaim "
    "execute explain expose express face fail faint fall fear feel feign fight figure find fire fix flee flirt follow "
    "force forget forgive gamble gather get give glance go grab graduate grow guard guess hang happen hate haunt hear "
    "help hesitate hide hire hold hope hug hunt hurry hurt identify ignore imagine impersonate impress imprison "
    "inform inherit injure insist inspect intend interrogate intervene introduce investigate invite join joke jump "
    "keep kidnap kill kiss kneel knock know lament laugh launch lead lean leap learn leave let lie like listen live "
    "lock long look lose love lure make manage marry meditate meet mention mistake moan mourn move murder narrate "
    "need nod notice notify obey observe offer open oppose order overhear owe own pack paint panic pay perform permit "
    "persuade pick pitch plan plant play plead plot point poison ponder pose pray prefer prepare pretend proceed "
    "promise propose protect protest prove pull punch punish pursue push put question quit race rally rape reach "
    "react read realise realize recall receive recite recognise recognize reconcile recount recover recruit refuse "
    "regain regret reject rejoice rejoin relate relent remain remember remind repair repay repent replace reply "
    "report rescue resent resign resist resolve respond rest retire retreat retrieve return reunite reveal ride rob "
    "roll rule run rush sacrifice sail save say scheme scream search secure seduce see seek seem seize sell send "
    "sense serve set settle share shoot shout show sigh sign sing sit skip slap slay sleep smile smuggle sneak sob "
    "speak spend split spot spy stab stage stand stare start stay steal step stop strangle strike struggle study "
    "stumble succeed succumb suffer suggest surrender survive suspect swear swim take talk teach tease tell tend "
    "testify thank think threaten throw tie torture track train trap travel treat trick trust try turn uncover "
    "understand undertake urge use vanish venture visit volunteer vow wait wake walk wander want warn watch wear weep "
    "whisper win wish witness wonder work worm worry worship write yearn yell yield"
) | word_set(
    "ate became began bet bought broke brought built came caught chose drew drove fell felt flew forgave forgot "
    "fought found froze gave got grew had has heard held herself hid himself hung is kept knew laid lay led left lent "
    "let lost made met paid put quit ran read rode rose said sang sank sat saw sent shook shot slept sold spent spoke "
    "stole stood struck swam swept swore taught thought threw told took understood was went wept woke won wore wrote"
)
"""What somebody does, behind a name."""

HANDLED = inflected(
    "accompany accuse admire adopt arrest ask assassinate befriend beg betray blackmail chase confront convince "
    "despise divorce forgive hate haunt help hire hug imprison inform interrogate invite kidnap kill kiss love marry "
    "murder persuade poison pursue rape recruit rescue save seduce shoot stab tell thank trick trust warn"
) | word_set(
    "asking befriending by killing kissing loving marrying meeting meets met murdering named telling tells told with"
)
"""What is done to somebody, before a name."""
