"""The map's families of tasks: wordings, instances and scripted solutions."""

from __future__ import annotations

from webrl_lite.envs.embedded.families import Family
from webrl_lite.envs.embedded.map import instances, oracles

SITES = ("map",)

FACTS = [
    Family(
        "map.phone",
        SITES,
        "retrieve",
        (
            "What is the phone number of {place} in {town}?",
            "Find the phone number of {place} in {town}.",
            "I want to call {place} in {town}. What is the number?",
        ),
        instances.phone,
        oracles.phone,
        wrong="555-0000",
    ),
    Family(
        "map.closing_time",
        SITES,
        "retrieve",
        (
            "At what time does {place} close {days}?",
            "Tell me the time at which {place} closes {days}.",
            "Until what time is {place} open {days}?",
        ),
        instances.closing_time,
        oracles.closing_time,
        wrong="23:00",
    ),
    Family(
        "map.coordinates",
        SITES,
        "retrieve",
        (
            "What are the coordinates of {place}?",
            "Find the latitude and longitude of {place}.",
            "Give me the coordinates of {place} as the map shows them.",
        ),
        instances.coordinates,
        oracles.coordinates,
        wrong="12.0001, 62.0001",
    ),
    Family(
        "map.population",
        SITES,
        "retrieve",
        (
            "What is the population of the town where {place} is?",
            "Find the town of {place} and tell me its population.",
            "How many people live in the town that {place} is in?",
        ),
        instances.population,
        oracles.population,
        wrong="1000",
    ),
    Family(
        "map.opening_year",
        SITES,
        "retrieve",
        (
            "According to its website, in which year did {place} open?",
            "Look at the website of {place}. In which year did it open its doors?",
            "Find on the website of {place} the year in which it opened.",
        ),
        instances.opening_year,
        oracles.opening_year,
        wrong="1066",
    ),
    Family(
        "map.missing",
        SITES,
        "retrieve",
        (
            'What is the phone number of {place}? Answer "N/A" if the map has no such place.',
            'Find the phone number of {place}, or answer "N/A" if it is not on the map.',
            'Which number do I call to reach {place}? If there is no such place, say "N/A".',
        ),
        instances.missing,
        oracles.nothing_found,
        wrong="555-0000",
    ),
    Family(
        "map.show_place",
        SITES,
        "navigate",
        (
            "Open the page of {place} in {town}.",
            "Show me {place} in {town} on the map.",
            "Go to the page about {place} in {town}.",
        ),
        instances.show_place,
        oracles.show_place,
    ),
]

ROUTES = [
    Family(
        "map.travel_time",
        SITES,
        "retrieve",
        (
            "How long does it take to get from {start} to {goal} {way}?",
            "What is the travel time from {start} to {goal} {way}?",
            "I go from {start} to {goal} {way}. How long is the trip?",
        ),
        instances.travel_time,
        oracles.travel_time,
        wrong="2 min",
    ),
    Family(
        "map.travel_distance",
        SITES,
        "retrieve",
        (
            "How far is it from {start} to {goal} {way}?",
            "What is the distance from {start} to {goal} {way}, in km?",
            "How many km is the way from {start} to {goal} {way}?",
        ),
        instances.travel_distance,
        oracles.travel_distance,
        wrong="0.1 km",
    ),
    Family(
        "map.compare_ways",
        SITES,
        "retrieve",
        (
            "How long does it take from {start} to {goal} {way}, and how long {other}? Give both times.",
            "Compare the travel times from {start} to {goal} {way} and {other}. Give both.",
            "Tell me the two travel times from {start} to {goal}: {way} and {other}.",
        ),
        instances.compare_ways,
        oracles.compare_ways,
        wrong="2 min, 3 min",
    ),
    Family(
        "map.branch_time",
        SITES,
        "retrieve",
        (
            "How long does it take from the {place} in {town} to {goal} {way}?",
            "What is the travel time {way} from the {place} in {town} to {goal}?",
            "I start at the {place} in {town} and go to {goal} {way}. How long does it take?",
        ),
        instances.branch_time,
        oracles.branch_time,
        wrong="2 min",
    ),
    Family(
        "map.open_directions",
        SITES,
        "navigate",
        (
            "Show the directions from {start} to {goal} {way}.",
            "Open the route from {start} to {goal} {way}.",
            "Get directions {way} from {start} to {goal}.",
        ),
        instances.open_directions,
        oracles.open_directions,
    ),
]

LOOKUPS = [
    Family(
        "map.nearest",
        SITES,
        "retrieve",
        (
            "Which {kind} is nearest to {place}?",
            "Find the {kind} that is closest to {place}.",
            "What is the name of the nearest {kind} to {place}?",
        ),
        instances.nearest,
        oracles.nearest,
        wrong="Nowhere House",
    ),
    Family(
        "map.count",
        SITES,
        "retrieve",
        (
            "How many {kinds} are there in {town}?",
            "Count the {kinds} in {town}.",
            "What is the number of {kinds} in {town}?",
        ),
        instances.count,
        oracles.count,
        wrong="97",
    ),
    Family(
        "map.accessible",
        SITES,
        "retrieve",
        (
            "Which one of the {kinds} in {town} is {access}?",
            "Of the {kinds} in {town}, find the one that is {access}.",
            "Only one of the {kinds} in {town} is {access}. What is its name?",
        ),
        instances.accessible,
        oracles.accessible,
        wrong="Nowhere House",
    ),
    Family(
        "map.open_category",
        SITES,
        "navigate",
        (
            "List the {kinds} in {town} that are {access}, oldest first.",
            "Show the {kinds} in {town} that are {access}, sorted with the oldest first.",
            "Open the list of {kinds} in {town} that are {access} and put the oldest first.",
        ),
        instances.open_category,
        oracles.open_category,
        held_out=True,
    ),
    Family(
        "map.neighbours",
        SITES,
        "retrieve",
        (
            "Which towns are neighbours of {town} by road? Name all of them.",
            "List all neighbours of {town} by road.",
            "What are the names of all the towns that are neighbours of {town} by road?",
        ),
        instances.neighbours,
        oracles.neighbours,
        held_out=True,
        wrong="Nowhere Town",
    ),
]

CHANGES = [
    Family(
        "map.save_place",
        SITES,
        "change",
        (
            "Save {place} in the list {list}.",
            "Put {place} into my list {list}.",
            "Add {place} to the saved places in {list}.",
        ),
        instances.save_place,
        oracles.save_place,
    ),
    Family(
        "map.move_saved",
        SITES,
        "change",
        (
            "Move the saved place {place} to the list {list}.",
            "{place} is in the wrong list. Move it to {list}.",
            "Change the list of the saved place {place} to {list}.",
        ),
        instances.move_saved,
        oracles.move_saved,
        held_out=True,
    ),
    Family(
        "map.remove_saved",
        SITES,
        "change",
        (
            "Remove {place} from my saved places.",
            "Take {place} off the saved places.",
            "I no longer need {place} in my saved places. Remove it.",
        ),
        instances.remove_saved,
        oracles.remove_saved,
    ),
    Family(
        "map.add_note",
        SITES,
        "change",
        (
            'Add a note to {place} with the text "{body}" and the name {author}.',
            'Write the note "{body}" about {place}. Sign it as {author}.',
            'My name is {author}. Leave a note on {place} that says "{body}"',
        ),
        instances.add_note,
        oracles.add_note,
    ),
    Family(
        "map.note_nearest",
        SITES,
        "change",
        (
            'Find the {kind} nearest to {place} and add a note with the text "{body}" and the name {author}.',
            'Write the note "{body}" about the {kind} that is closest to {place}. Sign it as {author}.',
            'My name is {author}. Leave a note that says "{body}" on the nearest {kind} to {place}.',
        ),
        instances.note_nearest,
        oracles.note_nearest,
    ),
    Family(
        "map.resolve_note",
        SITES,
        "change",
        (
            "Resolve the open note about {place}.",
            "The problem in the note on {place} is fixed. Resolve the note.",
            "Mark the open note on {place} as resolved.",
        ),
        instances.resolve_note,
        oracles.resolve_note,
    ),
]

FAMILIES = [*FACTS, *ROUTES, *LOOKUPS, *CHANGES]
