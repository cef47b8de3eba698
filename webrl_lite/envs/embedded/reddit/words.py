"""Words that the forum's texts are made of: forums with their things, patterns of titles and bodies, names.

Plain data, all invented. Few and plain words, used again and again in new combinations, so that a small
language model can read every page.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """What one forum is about."""

    name: str
    """The forum's name in addresses."""
    title: str
    things: tuple[str, ...]
    """Nouns, in the singular, that its titles speak of."""


_TOPICS = """
gardening: Gardens and yards: hedge, compost heap, rose, greenhouse, lawn, seed tray
indoor_gardening: Plants inside the house: fern, cactus, grow light, window box, plant pot, palm
garden_tools: Tools for the garden: shovel, rake, water hose, lawn mower, hedge cutter, garden cart
baking: Bread and cakes: apple pie, bread oven, cake tin, rye bread, pizza stone, cookie
cooking: Food at home: soup, frying pan, curry, salad, kitchen knife, pasta sauce
coffee: Coffee all day: coffee mill, espresso, paper filter, coffee cup, milk jug, roast
tea: Tea drinkers: green tea, teapot, tea leaf, kettle, tea cup, black tea
sailing: Sailing and boats: mast, anchor, small boat, harbor trip, sail, life vest
fishing: Fishing on rivers and lakes: fishing rod, trout, net, bait box, pike, fishing license
hiking: Long walks: hiking boot, trail map, mountain hut, rain coat, walking stick, summit
camping: Nights outside: tent, sleeping bag, camp fire, gas stove, head lamp, camp site
cycling: Bicycles of all kinds: road bike, bike chain, saddle, helmet, bike pump, long ride
city_cycling: Bicycles in the city: bike lane, bike lock, cargo bike, folding bike, bike shop, bell
running: Running for fun: running shoe, race, training plan, marathon, stop watch, night run
swimming: Pools and lakes: swim cap, pool, swim coach, diving board, wet suit, lake
climbing: Rocks and walls: rope, climbing wall, climbing shoe, knot, rock face, chalk bag
chess: Chess for everyone: chess clock, opening, bishop, end game, chess set, chess club
board_games: Board games: dice tower, game night, rule book, score sheet, game box, party game
card_games: Card games: card deck, joker, card trick, bridge table, trump card, poker night
puzzles: Puzzles and riddles: crossword, jigsaw, riddle, number puzzle, maze, puzzle box
books: Readers and books: novel, book shelf, library card, book fair, reading lamp, paper back
short_stories: Stories under ten pages: ghost story, first line, plot twist, villain, love story, ending
poetry: Poems and poets: sonnet, rhyme, love poem, reading circle, haiku, poem about rain
films: Films and cinema: silent film, movie poster, cinema seat, sequel, film score, comedy
music: Music of every kind: record player, concert, choir, radio show, love song, drum kit
guitar: Guitar players: guitar string, amplifier, guitar case, chord book, tuner, bass guitar
piano: Piano players: grand piano, sheet of music, piano teacher, piano stool, waltz, pedal
painting: Painting and color: oil painting, brush, canvas, easel, portrait, color wheel
pottery: Clay and pottery: clay bowl, kiln, glaze, vase, potter wheel, flower pot
knitting: Knitting and wool: scarf, wool hat, needle, sweater, wool shop, mitten
sewing: Sewing at home: sewing machine, button, winter coat, zipper, quilt, pair of jeans
woodwork: Things made of wood: work bench, hand saw, oak table, plane, wooden chair, bird house
home_repair: Repairs at home: leaking tap, door hinge, roof tile, wall socket, floor board, boiler
astronomy: The night sky: telescope, comet, star chart, meteor shower, moon photo, planet
weather: Wind and weather: storm, rain gauge, weather station, heat wave, snow day, fog bank
birds: Watching birds: owl, bird feeder, heron, nest, pair of binoculars, robin
dogs: Dogs and owners: puppy, dog leash, dog school, terrier, dog bed, dog walk
cats: Cats and owners: kitten, cat door, scratching post, cat toy, black cat, cat tree
fish_tanks: Fish tanks: gold fish, water filter, tank light, snail, water plant, fish tank
beekeeping: Bees and honey: bee hive, queen bee, honey jar, swarm, bee suit, wax candle
trains: Railways: steam engine, night train, train station, ticket, dining car, railway bridge
old_cars: Old cars: spare tire, engine oil, rusty door, car show, gear box, convertible
model_ships: Model ships: model kit, tall ship, glue, paint set, ship in a bottle, light house
photography: Photographs: camera, lens, photo album, tripod, sunset photo, film roll
languages: Learning languages: dictionary, grammar book, word list, accent, language course, verb
local_history: History of our towns: old map, castle, market square, town gate, old mill, diary
students: Student life: exam, student room, lecture, semester, study group, term paper
small_business: Small companies: bakery, invoice, business plan, market stall, tax form, web site
"""
"""One forum a line: name, title, things."""

TOPICS = tuple(
    Topic(name, title, tuple(things.split(", ")))
    for name, title, things in (line.split(": ") for line in _TOPICS.strip().split("\n"))
)

TEXT_TITLES = (
    "Is the new {thing} worth the wait?",
    "My first {thing} after a long break",
    "Looking for a better {thing}",
    "What to do with an old {thing}?",
    "Short guide to the perfect {thing}",
    "I finally found the right {thing}",
    "Please judge my last {thing}",
    "Why is every {thing} so expensive now?",
    "Nobody warned me about the {thing}",
    "Three mistakes with my first {thing}",
    "Which {thing} would you pick for winter?",
    "Weekly thread about the {thing}",
    "One year with the same {thing}",
    "Can I borrow a good {thing}?",
    "Never lend your {thing} to a friend",
    "Small tricks for a better {thing}",
)
LINK_TITLES = (
    "Photos of a huge {thing}",
    "Museum shows the oldest {thing}",
    "Town wants to save its last {thing}",
    "Video about a very strange {thing}",
    "Report on the price of the {thing}",
    "New study about the common {thing}",
)

BODIES = (
    "I have looked at the {thing} for {number} weeks.",
    "My neighbor says the {thing} is a waste of money.",
    "The {thing} cost me {number} dollars at the market.",
    "After {number} days the {thing} still looks fine.",
    "I found the {thing} in my late uncle's shed.",
    "The last {thing} broke after {number} months.",
)
QUESTIONS = (
    "What would you do?",
    "Any advice is welcome.",
    "Tell me if I am wrong.",
    "How was it for you?",
    "Thank you for reading.",
    "I will post photos soon.",
)
OPENINGS = (
    "I agree with this.",
    "That never worked for me.",
    "Good question.",
    "Nice work!",
    "Sorry, but this is bad advice.",
    "I had the same problem.",
    "My sister does it another way.",
    "Please read the rules first.",
    "This made my day.",
    "I am not so sure.",
    "Strong words for a beginner.",
    "You are right about that.",
)
REMARKS = (
    "Mine lasted {number} years.",
    "Try it again in spring.",
    "The cheap {thing} is good enough.",
    "Wait for a dry day.",
    "Ask in the shop on the corner.",
    "I would never buy a second {thing}.",
    "It took me {number} tries.",
    "A friend showed me the trick.",
    "The {thing} is only part of it.",
    "Keep it away from children.",
    "You will need more time.",
    "Measure twice before you start.",
)

ADJECTIVES = (
    "amber brave calm dusty early frosty gentle hidden iron jolly lucky mellow northern odd proud quick "
    "rusty silent tiny warm"
).split()
NOUNS = "fox lantern maple otter pebble raven river spoon tiger violin walnut wagon".split()

JOBS = (
    "Retired nurse,Night baker,School teacher,Bus driver,Young farmer,Ship cook,Shy painter,Former judge,"
    "Piano tuner,Post officer,Tired student,Glass maker,Forest guard,Radio host"
).split(",")
LOVES = (
    "old maps,bad jokes,long trains,cold soup,slow films,loud parrots,blue stamps,paper boats,winter walks,"
    "card tricks,street music,dark tea,wooden toys,garden gnomes"
).split(",")

SITES = ("daily-lantern", "morning-post", "open-shelf", "river-news", "north-review")
"""First parts of the host names that link submissions lead to."""

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COLORS = ("red", "green", "blue", "yellow", "orange", "purple", "white")

MESSAGES = (
    ("Question about your post", "Where did you buy the {thing}? I need one too."),
    ("Meeting next week", "We meet on {day} evening and talk about the {thing}. Will you come?"),
    ("Lost and found", "Is the {color} bag from the meeting yours? There is a {thing} in it."),
    ("Thank you", "Your advice about the {thing} helped me a lot. Can I call you on {day}?"),
    ("Swap", "I would swap my {thing} for your old one. Does {day} suit you?"),
)

OWN_BIO = "Reads more than I write. Lives by the water and drinks too much tea."
