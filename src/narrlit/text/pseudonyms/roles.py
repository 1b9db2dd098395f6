"""Nouns and verbs that tell a person, a place or a body from each other; lower case."""

from narrlit.text.pseudonyms.gazetteer import GIVEN
from narrlit.text.pseudonyms.lexicon import TITLES, inflected, word_set

PERSONS = TITLES | word_set(
    "man woman boy girl child baby kid teenager teen youth guy lad lass lady gentleman person people men women wife "
    "husband son daughter brother sister sibling father mother parent mom mum dad uncle aunt nephew niece cousin "
    "grandson granddaughter grandfather grandmother grandmother stepfather stepmother stepson stepdaughter stepbrother "
    "stepsister half-brother half-sister brother-in-law sister-in-law mother-in-law father-in-law son-in-law twin widow "
    "widower orphan bride groom fiance fiancé fiancee fiancée girlfriend boyfriend lover mistress friend best-friend "
    "enemy rival neighbor neighbour roommate flatmate classmate schoolmate colleague coworker co-worker partner boss "
    "employer employee assistant secretary servant maid butler housekeeper governess nanny cook chef waiter waitress "
    "bartender barmaid teacher student pupil professor scholar scientist biologist chemist physicist inventor engineer "
    "doctor surgeon physician nurse dentist psychiatrist psychologist therapist patient lawyer attorney judge "
    "prosecutor notary policeman policewoman cop detective investigator inspector sheriff lawman marshal officer agent "
    "spy assassin killer murderer hitman hunter thief robber burglar crook criminal gangster mobster gunman outlaw "
    "bandit pirate smuggler conman con-man con-woman swindler grifter prisoner inmate convict guard jailer warden "
    "soldier veteran sailor captain pilot aviator sergeant lieutenant colonel general mercenary warrior samurai knight "
    "squire king queen prince princess duke emperor nobleman aristocrat count countess lord landowner peasant farmer "
    "shepherd cowboy rancher miner worker carpenter blacksmith tailor baker butcher fisherman merchant trader "
    "businessman businesswoman banker broker millionaire billionaire tycoon industrialist heiress heir politician "
    "senator president minister mayor diplomat ambassador journalist reporter editor writer author novelist poet "
    "playwright actor actress singer dancer musician composer pianist violinist painter artist sculptor photographer "
    "director producer screenwriter filmmaker model athlete boxer wrestler coach footballer player champion magician "
    "wizard witch sorcerer sorceress vampire monster ghost alien robot android priest monk nun rabbi pastor bishop "
    "hermit prophet prostitute pimp dealer addict drunk alcoholic drifter tramp beggar tourist traveler traveller "
    "stranger foreigner immigrant refugee guide leader chief chieftain commander follower disciple apprentice mentor "
    "master protégé protege hero heroine protagonist antagonist villain narrator character survivor victim witness "
    "suspect informant accomplice henchman bodyguard driver chauffeur courier messenger clerk accountant librarian "
    "janitor salesman saleswoman shopkeeper innkeeper owner landlord landlady tenant hacker programmer astronaut "
    "archaeologist explorer adventurer historian philosopher mathematician geologist dog cat horse wolf bear mouse "
    "rabbit parrot monkey dragon signaller fellow comrade ally guardian ward lodger concierge manager executive "
    "investor colonist settler treasurer ringleader revolutionary terrorist activist feminist sexologist hypnotist "
    "surveyor miller widow-maker orderly counsellor counselor headmaster principal dean trainer jockey gambler "
    "bookmaker caretaker gardener handyman mechanic plumber electrician fireman firefighter paramedic"
)
"""Say that the name beside them is a person's, or an animal's with a part in the story."""

PLACES = word_set(
    "river lake island islands isle sea ocean bay gulf cape port harbor harbour coast beach cliff cliffs mount mountain "
    "mountains hill hills valley canyon desert forest wood woods jungle swamp park garden gardens field fields plain "
    "plains glacier falls waterfall cave caves street road avenue lane boulevard square alley bridge highway route "
    "city town village hamlet county province state district quarter suburb neighborhood neighbourhood borough ward "
    "country nation kingdom realm empire republic colony continent region territory planet moon galaxy star system "
    "world station base camp fort fortress castle palace tower manor mansion hall house abbey cathedral church temple "
    "monastery convent chapel cemetery graveyard prison jail asylum hospital hotel inn tavern pub bar restaurant cafe "
    "café saloon club casino theater theatre cinema museum library airport dock docks pier quay yard outpost ranch farm "
    "plantation estate villa cottage apartment building stadium arena zoo mine mill ruins hollow ring deep wells  oasis "
    "pass peak ridge heights springs creek pond reef lagoon strait channel canal point head moor heath bluff mesa "
    "archipelago peninsula rainforest grove glen dale vale crossing junction village-green parish vineyard "
    "lighthouse wharf basin delta fjord steppe tundra savanna marsh fen bog shire haven landing ford terrace crater"
)
"""Nouns of places: the last or first word of a place's name, or beside it."""

LONE_HEADS = word_set(
    "mount lake cape port fort san santa santo los las el new saint st rio isle puerto sierra tel bir wadi"
)
"""Begin a place's name."""

ORGANISATIONS = word_set(
    "inc corp corporation company co ltd llc limited industries enterprises enterprise holdings group organization "
    "organisation agency bureau department ministry office commission committee council parliament congress senate "
    "university college academy school institute institution society association federation union league alliance "
    "foundation trust fund bank army navy corps legion regiment brigade battalion division squadron fleet guard force "
    "forces police patrol militia service services intelligence court party church order brotherhood sisterhood guild "
    "cult sect clan gang cartel syndicate mob triad team club band orchestra choir circus troupe studio studios "
    "pictures films productions records press times post gazette herald tribune journal magazine newspaper network "
    "channel broadcasting airlines airways railways railway lines shipping motors laboratories labs systems "
    "technologies dynamics trading traders brothers bros sons partners associates "
    "consortium conglomerate firm resistance movement front rebels rangers knights templars tribe "
    "government administration authority mafia house-of-lords family crew nations estates media outfit works foundry mills mining railroad "
    "express freight haulage theatricals players ensemble collective cooperative co-operative"
)
"""Nouns of bodies: the last word of a body's name, or beside it."""

BODY_HEADS = word_set(
    "university ministry department bank house church order bureau office institute academy college society council "
    "league federation union army party brotherhood sisterhood guild school court museum knights daughters sons "
    "friends chamber board circle cult alliance assembly"
)
"""With "of" behind them they begin a body's name: University of X, Knights of the X."""

PLACE_HEADS = word_set(
    "tower isle city cities streets outskirts capital oasis bay gulf cape kingdom republic state states land lake valley palace castle temple port strait "
    "straits hall hotel bridge sea forest mount mountains island islands duchy empire province district county village "
    "town planet gates garden gardens fields plains hill hills house abbey cathedral coast cave caves well"
)
"""With "of" behind them they begin a place's name: Tower of X, Isle of X."""

EVENTS = word_set(
    "war wars agreement testament year protests expedition massacre incident festival ages age depression era battle siege treaty revolution uprising rebellion conference olympics crusade crusades accords"
)
"""A name that ends so tells a time: it stays, as "World War II" does; in "Battle of X" X alone is a name."""

GENERIC = (PERSONS | PLACES | ORGANISATIONS | EVENTS) - GIVEN
"""Words that alone name a kind of person or thing, whatever their case: the Ministry, Grandpa."""

OWNED = word_set(
    "empire court reign house farm ranch apartment cottage villa manor mansion hall estate plantation bar restaurant pub club inn hotel "
    "world garden room building head church mine boat field fields grave cafe"
)
"""Places that are as often a person's: "the house of X"."""

MOVING = word_set(
    "go goes went gone going come comes came coming travel travels traveled travelled traveling travelling return "
    "returns returned returning move moves moved moving flee flees fled fleeing fly flies flew flying sail sails sailed "
    "sailing drive drives drove ride rides rode head heads headed heading journey journeys journeyed run runs ran trip "
    "trips travels escape escapes escaped escaping emigrate emigrates emigrated way train bus ship flight voyage "
    "sent sends taken takes exiled deported brought transferred relocate relocates relocated moves native far tickets "
    "walk walks walked hitchhike hitchhikes return expedition visit door road straight northward southward arrive "
    "arrives arrived hail hails hailing miles"
)
"""Before "to" or "from" they say that a place follows."""

CONFIDING = word_set("confide confides confided believe believes believed trust trusts interest interested love faith")
"""Before "in" they say that a person follows: "confides in X"."""

VERBS = inflected(
    "accept accompany accuse ache act admit adopt advise agree allow announce answer apologize apologise appear approach "
    "argue arrange arrest arrive ask assist assume attack attempt attend avoid awaken ban beg befriend believe belong "
    "betray bite blackmail blame borrow bribe bury call care carry catch cause celebrate challenge chase cheat choose "
    "claim climb collapse comfort commit complain confess confide confront consider contact continue convince "
    "cook counsel cross cry dance deal debate deceive decide declare defeat defend demand deny depart despise destroy "
    "die disappear discover disguise dismiss divorce dream dress drink drive drop drown earn elope embark embrace "
    "emerge emigrate employ encounter encourage endure enjoy enlist enter escape escort establish exact examine "
    "exclaim execute explain expose express face fail faint fear feel feign fight figure fire fix flee flirt follow "
    "force forget forgive gamble gather glance go grab graduate grow guard guess hang happen hate haunt hear help hesitate "
    "hide hire hope hug hunt hurry identify ignore imagine impersonate impress imprison inform inherit injure "
    "insist inspect intend interrogate intervene introduce investigate invite join joke jump keep kidnap kill kiss kneel "
    "knock know lament laugh launch lead lean leap learn leave lie like listen live lock long look love lure manage "
    "marry meditate meet mention mistake moan mourn move murder narrate need notice notify obey observe offer open oppose "
    "order overhear owe own pack paint panic pay perform permit persuade pick plan plant play plead plot point "
    "poison ponder pose pray prefer prepare pretend proceed promise propose protect protest prove pull punch punish "
    "pursue push question quit race rally rape reach react read realize realise recall recognize recognise reconcile "
    "recount recover recruit refuse regain regret reject rejoin relate relent remain remember remind repay repent "
    "replace reply report rescue resent resign resist resolve respond rest retire retreat retrieve return reunite "
    "reveal ride rob roll rule run rush sacrifice sail save scheme scream search secure seduce see seek seem seize "
    "send sense serve set settle share shoot shout show sigh sign sing sit skip slap slay sleep smile smuggle sneak sob "
    "speak spend split spot spy stab stage start stay steal step stop strangle strike struggle study stumble succeed "
    "succumb suffer suggest surrender survive suspect swear swim take talk teach tell tend testify thank think "
    "threaten throw tie torture track train trap travel treat trick trust try turn understand undertake urge use "
    "vanish venture visit volunteer vow wait wake walk wander want warn watch wear weep whisper win wish witness "
    "wonder work worry worship worm yearn yell yield deserve desire attract begin become bring build buy come cut do "
    "draw eat end fall find get give hold hurt let lose make put realise receive recite sell say stand uncover write "
    "bet pitch claim wish tease drag drift stare nod"
) | word_set(
    "took went came saw said told met left found fell ran got gave knew felt thought kept wrote led stood brought made "
    "began won lost became broke built bought caught chose drew drove ate fought flew forgot forgave froze grew hid hung "
    "held heard laid lay lent paid put quit read rode rose sang sat sent shook shot slept sold spent spoke stole struck "
    "swam swore taught threw understood woke wore wept let bet sank swept is was has had himself herself"
)
"""What somebody does, behind a name."""

HANDLED = inflected(
    "marry kill murder rescue save arrest betray kidnap seduce love hate befriend divorce confront blackmail kiss hug "
    "hire interrogate imprison persuade convince tell ask beg help warn recruit accuse forgive trick adopt accompany "
    "invite thank inform rape shoot stab poison assassinate pursue chase haunt despise admire trust"
) | word_set(
    "met meets told tells marrying killing meeting kissing befriending loving telling asking murdering with by named"
)
"""What is done to somebody, before a name."""
