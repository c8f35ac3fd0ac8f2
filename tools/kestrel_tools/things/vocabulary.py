"""Words that are printed somewhere, for those who learn to read. No torch."""

# The tokenizer is made with these; more follow below.
WORDS = """
about after again air all also and animal answer apple ask away back bad bag bakery ball bank bar bath beach
bed best bike bird black blue boat book box boy bread break bridge bus buy cafe cake call camp car card cat
center chair cheap city clean close closed club coffee cold come cook cool corner country cup danger dark
day deal deep dinner dog door down draw dream drink drive dry east eat egg empty end enter even exit face
fall farm fast fire first fish five flat floor flower fly food four free fresh friend fruit full fun game
garden gas gift girl give glass go gold good great green grow guest hair half hall hand happy hard head
heart hello help here high hill holiday home hot hotel house ice idea inn island jazz job joy juice jump
jungle just keep key kids kind king kiosk kitchen lake land large last late lemon left letter library life
light like line lion list little live local long love low lucky lunch mail make map market menu metro milk
mind mix money moon more morning mountain music name new news next nice night no north note now number ocean
office old one only open orange order our out over page paint paper park part party pay phone pink place
plant play pool post power price pull push quick quiet quiz rain read ready real red rent rest rice right
ring river road rock room round run safe sale salt sand school sea seat second see sell seven shop short
show sign silver sing six sleep slow small smile snow soap soft sold song soon south space speed sport
spring square star start station stay still stop store story street strong sugar summer sun sweet swim table
take talk taxi tea team tell ten test text thank the thing this three ticket time today toilet tools top
town toys train travel tree trip two under up use valley van very video view visit wait walk wall want warm
wash watch water way week well west wet white wild win wind window wine winter wood word work world write
year yellow yes young your zebra zero zone zoo
""".split()  # noqa: SIM905, a list would take three hundred lines

# Signs, shops, kitchens, offices, roads, bodies, clothes, feelings, doings, qualities, places and names.
MORE_WORDS = """
able above absent accept access account across action active actor actual adapt address adult advance
advice afraid afternoon against age agency agenda agree ahead aim airport aisle alarm album alert alive
alley allow almost alone along already always amber amount ample ancient angle angry ankle annual
anybody apart apron arcade archive area arena arm army arrival arrow artist ashore aside asleep assist
attic auction august author autumn avenue avoid awake award aware awful baby bacon badge bagel baggage
baker balance balcony ballet bamboo band banner barber bargain barn barrel basic basil basin basket
batch battery beans beard beauty became because bedroom beef before begin behind believe bell belong
below belt bench beneath berry beside better between beware beyond bicycle billion birthday biscuit
bishop bitter blanket blend bless blind block blossom blouse board body bonus border borrow boss bottle
bottom bowl bracket brain brake branch brand brass brave breath breeze brick bright bring broken bronze
brother brown brush bucket budget buffet build bundle burger bush business busy butcher butter button
buyer cabin cable camera canal cancel candle candy canvas canyon capital captain carbon career careful
cargo carpet carrot carry cash castle catch cattle caution cave ceiling cellar cement census cereal
certain chain chalk champion chance change channel chapel chapter charge charity charm chase cheek
cheese chef cherry chest chicken chief child chimney choice choose church cinema circle circus citizen
claim class clay clever client cliff climb clinic clock cloth clothes cloud coach coast coat cobra
coconut coin college colony colour column combine comedy comfort common company compass complete
concert cone connect contact content control convert cookie copper copy coral corn correct cost cotton
council count couple courage course court cousin cover cow cozy crab cradle craft crane crash cream
create credit crew crisp cross crowd crown cruise crystal culture curry curtain curve custom cycle
daily dairy damage dance daring dash data daughter dawn dealer dear decide decor degree delay deliver
delta dentist depart deposit desert design desk detail detour develop diamond diary diesel diet digital
direct dirty discount dish distance divide doctor dollar dolphin domain donkey double dough dozen
dragon drama dress drift driver drop drum duck during dust duty eager eagle early earn earth easel easy
echo edge edition editor effort eight either elbow elect elegant elephant eleven else email emerald
emergency employ energy engine enjoy enough entire entrance entry envelope equal error escape estate
evening event ever every exact example except exchange excuse expect expert explore express extra
fabric factory fair family famous fancy farmer fashion father faucet favor feather feed feel fellow
fence ferry festival fever few field fifth fifty fight figure fill film filter final find finger finish
firm fitness fix flag flame flash flavor flight float flock flood flour flow fluid foam focus fog fold
follow foot football force forest forget fork form fortune forty forward fountain fox frame freedom
freight frequent friday frost frozen fuel funny furniture future gallery gallon garage garlic gate
gather general gentle giant ginger given glad glory glove glow goal goat grade grain grand grape grass
gravel gravy gray ground group guard guess guide guitar habit halt hammer harbor harvest hat hazel
health hear heat heavy height helmet herb hero hidden hike hobby hold hollow honest honey hook hope
horizon horn horse hospital host hour huge human humble humor hundred hungry hunter hurry icon image
import inch include income indoor infant inform injury ink insect inside invite iron item ivory jacket
jam january jar jeans jelly jewel join joke journey judge july june junior jury keyboard kettle kilo
kingdom kiss kite knee knife knock know label ladder lady lamp language laptop latte laugh laundry
lavender law lawn layer leader leaf learn lease leather leave lecture legal legend lemonade length
lesson level liberty license lift lily limit linen liquid listen litter lively load loan lobby lobster
lock lodge logic lonely loud lounge loyal luggage lumber lunar machine magic magnet maid main major
mango manner manual maple marble march margin marine mark mask master match matter meadow meal measure
meat medal media medical medium meet melody melon member memory mention metal meter method middle
midnight mile million mineral minor mint minute mirror missing mobile model modern moment monday monkey
month monument motel mother motor mouse mouth move movie muffin museum mushroom mustard myself mystery
napkin narrow nation native nature navy near neat neck needle nephew nerve nest network never nickel
niece nine noble noise noodle noon normal nose notebook nothing notice novel nurse nut oak oats object
observe obtain obvious october offer officer often olive onion online opera opinion option orbit
orchard orchid organ origin other otter outdoor outlet outside oven owner oxygen oyster package paddle
palace palm panda panel pantry parade parcel pardon parent parking parrot passage passport past
pasta pastry patch path patient patrol pattern pause peace peach peak peanut pearl pebble pedal pencil
people pepper perfect perform perhaps period permit person petal phrase piano pickle picnic picture
piece pigeon pillow pilot pine pioneer pipe pirate pitch pizza planet plastic plate platform player
plaza pleasant please plenty plum plumber pocket poem poetry point poison polar police polite pond pony
popcorn popular porch portrait position possible potato pottery powder prairie praise prefer premium
prepare present press pretty prince print private prize problem produce product profit program project
promise proof proper protect proud provide public pudding pumpkin punch pupil puppy pure purple purpose
purse puzzle pyramid quality quarter queen question queue quilt quote rabbit race rack radar radio
railway rainbow ramp ranch random range rapid rare raspberry rather raven razor reach reason receipt
recipe record recycle reduce region regular relax release remain remember remote remove repair repeat
reply report request rescue reserve respect result return reward rhythm ribbon rich ride ripple
ritual roast robin robot rocket roof root rope rose rough route rowing royal rubber rule rural sack sad
saddle sailor salad salmon sample sandal sandwich saturday sauce sausage save scale scarf scene science
scissors scooter score scout screen script sculpture search season secret section secure seed select
senior sense september series serve service settle shadow shallow shampoo shape share shark sharp sheep
sheet shelf shell shelter shift shine ship shirt shock shoe shore shoulder shovel shower shrimp shuttle
side sight signal silent silk simple since single sister size skate sketch skill skin skirt sky slice
slide slope smart smoke smooth snack soccer social sock soda sofa solar soldier solid solve someone
soup source spare spark special spice spider spinach spirit splash spoon spray squad squash stable
stadium staff stage stairs stamp stand state statue steak steam steel step stereo stick stock stone
storm stove straight strange straw stream stretch string stripe studio study stuff style subject subway
success such sudden suggest suit sunday sunny sunrise sunset supper supply support surf surface
surprise sweater switch symbol syrup system tablet tail tailor tango tape target taste tavern teacher
temple tennis terrace theater thin third thirsty thirty thought thread throne through thumb thunder
thursday tiger timber tiny tire tissue title toast tobacco together token tomato tomorrow tongue
tonight tooth topic torch total touch tour towel tower trade traffic trail trainer tram treasure treat
trend trial triangle tribe trick trolley trophy trouble truck true trumpet trust tuesday tulip tuna
tunnel turkey turn turtle twelve twenty twin type umbrella uncle uniform union unique unit universe
until upper urban useful usual vacant vacuum valid value vanilla vapor variety vast vegan velvet vendor
venue version victory village vinegar violet violin virtue vision vital vivid voice volcano volume vote
voyage wagon waiter wallet walnut warehouse warning waste wave wealth weather wedding wednesday weekend
weight welcome whale wheat wheel whisper whistle whole width willow windmill wing wisdom wish without
wolf wonder wool worker worth wrap wrist yacht yard yarn yesterday yogurt zigzag zipper
adam alice amsterdam anna athens atlanta austria bella berlin boston brazil canada carla charlie
chicago clara daniel david denmark diana dublin edward ella emily finland florence france frank george
germany grace greece hannah harry helen henry hugo ireland isabel istanbul italy jack james japan julia
karen kenya kevin laura lisbon london lucas lucy madrid maria martin mexico miami milan monica moscow
munich naples nora norway oliver oscar peter poland portugal prague robert rome ruby russia scotland
simon sofia spain stella sweden sydney texas thomas tokyo turin venice vienna vincent warsaw zurich
""".split()  # noqa: SIM905

# Training alone prints these: the scores keep their words, so that their scenes stay the same.
OTHER_WORDS = """
accepted aid am ambulance america apartment apples appointment apr april aquarium are arrivals art
at atm aug auntie authorized available banana bananas batteries bbq be been beer ben bicycles big bills
biology bob bookstore boulevard breakfast brunch burrito buses but by bye california calm can cappuccino
cards care carrots cheers chemistry china christmas classic climate closing cocktail collection compost
confidential congrats congratulations could crossing customs cyclists dad dec december delete delivery
deluxe departure departures dessert dice different dishes do donut download draft due dumping easter edit
eggs eighteen eighty emma employees engineer england english equality espresso eu exam faith farmers feb
february fee fifteen fishing flammable flea florida for forever found fourteen fragile fri friends fries
from furnished gap garbage gentlemen gluten goodbye graduation grandma grandpa grey groceries gym had
halloween handle handmade has have he her hey hi highway his history homework hostel hours how hugs i if
important in india is it its jan jane john jul jun justice kate kisses kiwi ladies lane later leo lisa
littering lives loading login logo logout los lost made manager mar mary math max may me meeting men merge
merry mess mia mike milkshake mine miss mocha mom mon motorway mum must my nails natural nineteen ninety not
nov november occupied oct of off oil ok on onions opening or oranges organic original paid paris password
paul pear pedestrian pedestrians personnel pharmacy physics pick pickup pie pineapple pm pork potatoes
potluck refund regards reminder reserved resort restroom restrooms roll rooms salon sarah sat sep settings
seventeen seventy she shoes should signup sincerely sixteen sixty slippery smoking smoothie so sorry spa
starts strawberry strike student submit sushi swimming taco takeaway takeout tax terminal than thanks
thanksgiving theatre them then they think thirteen thousand thu tickets tip tissues to todo tom tomatoes
toothpaste trash trespassing trucks tue uk update upload urgent us usa username vacancy valentine vegetarian
vibes vip was watermelon wc we wed were what when where who why wifi will winner with women would yield
york you yours
""".split()  # noqa: SIM905

PHRASES = tuple(
    " ".join(phrase.split())
    for phrase in """
add to cart; back soon; bake sale; be kind; be right back; beach party; best dad; best mom; beware of dog;
big sale; bike lane; book shop; bridge out; bus stop; buy now; call me; call mom; cards only; cash only;
city center; closed today; coffee shop; cold drinks; dead end; dish of the day; do not disturb; do not
enter; do not feed; do not touch; dream big; exit only; farmers market; fire alarm; fire exit; first aid;
flea market; for rent; for sale; free entry; free parking; free WiFi; fresh bread; fresh fish; fresh juice;
game over; garage sale; get well soon; glass only; go back; go slow; good luck; good morning; good night;
grand opening; great job; half price; happy birthday; happy easter; happy new year; high score; home sweet
home; hot dogs; hot drinks; I love you; I miss you; ice cream; in use; keep calm; keep left; keep off grass;
keep out; keep right; last day; level up; live music; log in; log out; lost and found; lost cat; lost dog;
members only; merry xmas; mind the gap; mind your head; movie night; next level; no dogs; no entry; no exit;
no fishing; no food; no littering; no parking; no smoking; no swimming; no u turn; old town; on sale; one
way; open 24 hours; open daily; open late; out of order; paper only; pet shop; pizza night; play again;
please knock; please wait; post office; press start; push to open; quiz night; read more; ring the bell;
road closed; road work; school bus; school fair; school zone; see you later; see you soon; sign in; sign up;
slow down; sold out; soup of the day; speed limit 30; staff only; stay calm; take away; take one; tea room;
team work; thank you; thanks a lot; this side up; to go; today only; town hall; toy store; train station;
try again; vip only; waiting room; watch out; watch your step; we are open; welcome home; well done; wet
floor; yard sale; you lose; you win
""".split(";")  # noqa: SIM905
)
