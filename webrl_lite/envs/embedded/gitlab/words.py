"""Word lists that Forgeworks' data are made of: few plain words, combined so that names are unique.

All names are invented. ``data`` draws from these lists; the tasks take from here what they ask to type.
"""

from itertools import product

PEOPLE = (
    # The first eight are look-alikes of one another: same last name, or nearly the same user name.
    ("mlindqvist", "Marta Lindqvist"),
    ("maglindqvist", "Magda Lindqvist"),
    ("lhansen", "Lars Hansen"),
    ("lehansen", "Lena Hansen"),
    ("jsato", "Jonas Sato"),
    ("jusato", "Juno Sato"),
    ("rsilva", "Rosa Silva"),
    ("rusilva", "Ruben Silva"),
    ("aabara", "Ada Abara"),
    ("balmeida", "Bruno Almeida"),
    ("carslan", "Carla Arslan"),
    ("dbakker", "Daria Bakker"),
    ("ebecker", "Elias Becker"),
    ("fbrandt", "Farah Brandt"),
    ("gcruz", "Goran Cruz"),
    ("hdahl", "Hana Dahl"),
    ("idubois", "Imani Dubois"),
    ("jfarkas", "Jada Farkas"),
    ("kgruber", "Karim Gruber"),
    ("lhofer", "Leila Hofer"),
    ("mhorvat", "Malik Horvat"),
    ("nibarra", "Nadia Ibarra"),
    ("ojovic", "Omar Jovic"),
    ("pkaya", "Petra Kaya"),
    ("qkeller", "Quinn Keller"),
    ("rkimura", "Rhea Kimura"),
    ("skovacs", "Sana Kovacs"),
    ("tlaine", "Talia Laine"),
    ("umaas", "Uma Maas"),
    ("vmoreau", "Vera Moreau"),
    ("wnovak", "Wanda Novak"),
    ("yokafor", "Yusuf Okafor"),
    ("zolsen", "Zara Olsen"),
    ("borlov", "Bela Orlov"),
    ("cparedes", "Chiara Paredes"),
    ("dpetrov", "Dmitri Petrov"),
    ("erahman", "Edda Rahman"),
    ("freyes", "Femi Reyes"),
    ("gricci", "Greta Ricci"),
    ("hschmid", "Hugo Schmid"),
    ("itanaka", "Ines Tanaka"),
    ("ktoure", "Keiko Toure"),
    ("lvargas", "Luca Vargas"),
    ("mvogel", "Mila Vogel"),
    ("nweiss", "Noor Weiss"),
    ("oyilmaz", "Olga Yilmaz"),
)
"""User name and name of every account; the first is the usual one."""

GROUPS = (
    ("harbor-labs", "Harbor Labs", "Tools for ports and ships."),
    ("north-tools", "North Tools", "Small tools that do one thing."),
    ("blue-river", "Blue River", "Water data for towns."),
    ("cedar-works", "Cedar Works", "Software for workshops."),
    ("night-shift", "Night Shift", "Things we build after work."),
    ("open-meadow", "Open Meadow", "Open data for farms."),
    ("stone-bridge", "Stone Bridge", "Planning for roads and bridges."),
    ("quiet-code", "Quiet Code", "Libraries with few surprises."),
    ("field-notes", "Field Notes", "Notes, maps and measurements."),
    ("lantern-team", "Lantern Team", "Games and lights."),
)
"""Path, name and description of the groups."""

FIRST = (
    "Amber Cedar Copper Ember Flint Granite Ivory Jasper Lunar Maple Nimbus Ocean Pebble Quartz Silver Timber"
).split()
PURPOSE = {
    "Board": "board for tasks and plans",
    "Cache": "cache for slow pages",
    "Chart": "charts from tables",
    "Clock": "clock for daily jobs",
    "Editor": "text editor for teams",
    "Gate": "log-in for small sites",
    "Index": "search index for documents",
    "Kit": "kit of page parts",
    "Ledger": "ledger for small shops",
    "Mail": "mail with rules",
    "Notes": "notes with links",
    "Parser": "parser for log files",
    "Player": "player for sound files",
    "Queue": "queue for long jobs",
    "Reader": "reader for news feeds",
    "Tracker": "tracker for parcels",
}
"""What a project is, by the second word of its name."""
QUALITY = ("Fast", "Small", "Simple", "Open", "Safe", "New")

LABELS = ("bug", "feature", "docs", "design", "urgent", "test")
MILESTONES = (
    "Version 1.0",
    "Version 1.1",
    "Version 2.0",
    "Spring release",
    "Summer release",
    "Autumn release",
)
NEW_MILESTONES = tuple(
    f"{first} {second}"
    for first, second in product(
        ("Winter", "Harvest", "Launch", "Pilot", "Review", "Cleanup", "Speed", "Security"),
        ("release", "week", "phase", "sprint"),
    )
)
"""Titles that no milestone has yet."""

FAULTS = "Slow Broken Missing Wrong Empty Hidden Double Late".split()
PARTS = "button menu title link list image date filter label table chart form".split()
PLACES = "login report profile export search invoice calendar upload print settings".split()
PLANS = "Add Rename Remove Test Move Simplify".split()
COMMENTS = (
    "I can see this too.",
    "It works on my machine with the last version.",
    "Can you add a test for this?",
    "Please have a look at the log.",
    "This also happens on a phone.",
    "I will take this next week.",
    "The change looks good to me.",
    "We should do this before the release.",
    "Thank you for the report.",
    "Is this still open?",
)
NEW_COMMENTS = tuple(
    f"{first} {second}"
    for first, second in product(
        ("Please update", "I have checked", "We still need", "Do not forget", "Thanks for"),
        (
            "the change log.",
            "the test cases.",
            "the user guide.",
            "the code comments.",
            "the error texts.",
            "the file names.",
        ),
    )
)
"""Comments that an instruction asks to write."""
NEW_ISSUES = tuple(
    f"{first} {second}"
    for first, second in product(
        ("Crash after", "Warning after", "No sound after", "Blank page after", "Time-out after"),
        (
            "the update",
            "a restart",
            "the import",
            "a reset",
            "the upgrade",
            "a long pause",
            "the backup",
            "a rename",
        ),
    )
)
"""Titles of issues that an instruction asks to open."""
NEW_PROJECTS = tuple(
    f"{first} {second}"
    for first, second in product(
        ("Coral", "Falcon", "Garnet", "Hazel", "Meadow", "Orchid", "Raven", "Sunset"),
        ("Planner", "Recorder", "Sketch", "Timer", "Viewer", "Wiki"),
    )
)
"""Names of projects that an instruction asks to create."""
NEW_DESCRIPTIONS = tuple(
    f"{first} {second}"
    for first, second in product(
        ("Moved to", "Kept for", "Rewritten for", "Waiting for", "Tested with"),
        (
            "the new server",
            "the old customers",
            "the next course",
            "the winter season",
            "the partner team",
            "the field test",
        ),
    )
)
"""Project descriptions that an instruction asks to write."""
STATUSES = tuple(
    f"{first} {second}"
    for first, second in product(
        ("Out until", "Busy until", "On leave until", "Travelling until", "Working from home until"),
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "noon"),
    )
)
"""Statuses that an instruction asks to set."""

COMMIT_VERBS = "Fix Add Remove Update Rename Test Clean Move".split()
COMMIT_THINGS = (
    "date format|start page|error texts|user guide|import script|page header|job list|color table|"
    "default port|log file|form checks|backup job|icon set|time zone"
).split("|")

STATUS_LINES = ("At work", "On holiday", "Reviewing", "In a meeting", "Learning", "")
BIOS = (
    "I like small tools.",
    "Maps and tables.",
    "Mostly tests.",
    "Writing docs.",
    "Old machines, new code.",
    "",
)


def issue_titles() -> list[str]:
    """Return all issue titles the lists allow, such as ``Slow filter on the report page``."""
    return [f"{fault} {part} on the {place} page" for fault, part, place in product(FAULTS, PARTS, PLACES)]


def merge_titles() -> list[str]:
    """Return all merge request titles the lists allow, such as ``Rename the filter of the report form``."""
    return [f"{plan} the {part} of the {place} page" for plan, part, place in product(PLANS, PARTS, PLACES)]
