"""The map site: exact routes, its pages' rules, and its tasks."""

import re
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import entity_split
from webrl_lite.envs.embedded.map import instances, routing
from webrl_lite.envs.embedded.map.network import SPEEDS
from webrl_lite.envs.embedded.map.pages import app
from webrl_lite.envs.embedded.map.tasks import FAMILIES
from webrl_lite.envs.embedded.site import DATABASE, READ_ONLY


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worlds") / world.PRISTINE
    world.build(path)
    return path


@pytest.fixture
def db(pristine: Path):
    connection = sqlite3.connect(f"file:{pristine}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


@pytest.fixture
def database(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(pristine, tmp_path / "w0.db"))


@pytest.fixture
def client(database: Path) -> FlaskClient:
    app.secret_key = "test"
    client = app.test_client()
    client.environ_base[DATABASE] = str(database)
    return client


def place(db: sqlite3.Connection, where: str) -> sqlite3.Row:
    """Return the first place of a condition, with its town and address."""
    return db.execute(
        "SELECT place.*, town.name AS town, '/' || shape || '/' || place.id AS path FROM map_place AS place "
        f"JOIN map_town AS town ON town.id = town_id WHERE {where} ORDER BY place.id"
    ).fetchone()


def send(client: FlaskClient, page: str, path: str, **fields: object):
    """Send a form with the token that a page holds."""
    token = re.search(r'name="form_key" value="(\w+)"', client.get(page).text)[1]
    return client.post(path, data={"form_key": token, **fields})


# Routes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "distance", "time"),
    [
        # M1 to Hay Corner: |(13, -1)| * 1.02 = 13.3 km; Route 5: |(6, 8)| * 1.08 = 10.8 km; 8.0 + 8.1 min.
        ("car", "24.1 km", "16 min"),
        # Route 1 by Sand Point: |(6, 12)| * 1.08 = 14.5 km, |(13, -5)| * 1.08 = 15.0 km; 29.5 km at 18 km/h.
        ("bicycle", "29.5 km", "1 h 38 min"),
        # The same at 5 km/h.
        ("foot", "29.5 km", "5 h 54 min"),
    ],
)
def test_a_route_has_the_figures_that_the_coordinates_give(client, mode, distance, time):
    page = client.get(f"/directions?from=Alderbrook&to=Brindle+Bay&mode={mode}").text
    assert f"Distance: <b>{distance}</b>" in page
    assert f"Time: <b>{time}</b>" in page


@pytest.mark.parametrize(
    ("tenths", "text"),
    [
        (0, "1 min"),
        (899, "1 min"),
        (900, "2 min"),
        (35_700, "1 h 00 min"),
        (39_000, "1 h 05 min"),
        (972_000, "27 h 00 min"),
    ],
)
def test_a_time_is_rounded_half_up_to_minutes_and_is_one_at_least(tenths, text):
    assert routing.time_text(tenths) == text


@pytest.mark.parametrize(("hundreds", "text"), [(0, "0.0 km"), (7, "0.7 km"), (473, "47.3 km"), (1000, "100.0 km")])
def test_a_distance_has_one_decimal(hundreds, text):
    assert routing.distance_text(hundreds) == text


def test_every_speed_gives_whole_tenths_of_a_second():
    assert all(3600 % speed == 0 for speeds in SPEEDS.values() for speed in speeds.values())


def test_every_mode_reaches_every_town(db):
    graph = routing.load_graph(db)
    for mode in SPEEDS:
        assert all(graph.towns <= set(routing.fastest(graph, start, mode)) for start in graph.towns), mode


def test_closed_roads_are_not_used(db):
    graph = routing.load_graph(db)
    kinds = {road["id"]: road["kind"] for road in db.execute("SELECT id, kind FROM map_road")}
    for mode, closed in (("car", "path"), ("bicycle", "motorway"), ("foot", "motorway")):
        ways = [way for start in graph.towns for way in routing.fastest(graph, start, mode).values()]
        assert closed not in {kinds[edge.road_id] for way in ways for edge in way}


def test_a_fastest_route_is_never_slower_than_any_detour(db):
    """Triangle inequality over all triples of spots, by car."""
    graph = routing.load_graph(db)
    time = {
        (start, end): sum(edge.length_hm * 3600 // SPEEDS["car"][edge.kind] for edge in way)
        for start in graph.names
        for end, way in routing.fastest(graph, start, "car").items()
    }
    spots = list(graph.names)
    assert all(time[a, c] <= time[a, b] + time[b, c] for a in spots for b in spots for c in spots)


def test_places_on_one_street_are_as_far_apart_as_their_house_numbers_say():
    near = routing.Stop("A, T", "A", "T", 1, "Mill Street", 3)
    far = routing.Stop("B, T", "B", "T", 1, "Mill Street", 10)
    route = routing.find_route(routing.Graph({1: "T"}, frozenset({1}), {1: ()}), near, far, "foot")
    assert route.length_hm == 7
    assert routing.time_text(route.tenths) == "8 min"  # 0.7 km at 5 km/h are 8.4 minutes


def test_places_on_streets_of_one_name_in_two_towns_go_by_road(db):
    graph = routing.load_graph(db)
    spots = {name: spot for spot, name in graph.names.items()}
    here = routing.Stop("A, Alderbrook", "A", "Alderbrook", spots["Alderbrook"], "Mill Street", 3)
    there = routing.Stop("B, Brindle Bay", "B", "Brindle Bay", spots["Brindle Bay"], "Mill Street", 10)
    assert routing.find_route(graph, here, there, "car").length_hm == 3 + 241 + 10


def test_a_road_that_goes_on_is_one_leg(client):
    page = client.get("/directions?from=Alderbrook&to=Brindle+Bay&mode=foot").text
    assert page.count("<li>Route 1 to") == 1
    assert "Route 1 to Brindle Bay" in page


def test_the_route_is_drawn_on_the_map(client):
    assert client.get("/directions?from=Alderbrook&to=Brindle+Bay&mode=car").text.count('class="route"') == 4
    assert 'class="route"' not in client.get("/directions").text


# Directions form ------------------------------------------------------------------------------------------


def test_directions_have_one_address_whatever_was_typed(client, db):
    cafe = place(db, "place.kind = 'park'")
    answer = client.get(f"/directions?to=alderbrook&from=++{cafe['name'].upper()}&mode=car&other=1")
    assert answer.status_code == 302
    label = f"{cafe['name']}, {cafe['town']}".replace(",", "%2C").replace(" ", "+")
    assert answer.location == f"/directions?from={label}&to=Alderbrook&mode=car"
    assert client.get(answer.location).status_code == 200


def test_an_ambiguous_name_gives_a_list_to_choose_from(client, db):
    page = client.get("/directions?from=City+Pharmacy&to=Alderbrook&mode=foot").text
    assert "Did you mean" in page and "Distance:" not in page
    links = re.findall(r'<a href="(/directions\?from=City[^"]+)">(City Pharmacy, [^<]+)</a>', page)
    assert len(links) == 6
    chosen = client.get(links[0][0].replace("&amp;", "&"))
    assert "Distance:" in chosen.text and f'value="{links[0][1]}"' in chosen.text


def test_an_unknown_name_is_an_error_that_keeps_both_inputs(client):
    page = client.get("/directions?from=Nowhere+Cafe&to=Dunmere&mode=bicycle").text
    assert "No place is called Nowhere Cafe." in page
    assert 'value="Nowhere Cafe"' in page and 'value="Dunmere"' in page
    assert '<option value="bicycle" selected>' in page


def test_one_place_twice_is_an_error(client):
    assert "From and To are the same place." in client.get("/directions?from=Dunmere&to=Dunmere&mode=car").text


def test_swap_turns_the_route_round(client):
    answer = client.get("/directions?from=Dunmere&to=Northam&mode=foot&swap=1")
    assert answer.location == "/directions?from=Northam&to=Dunmere&mode=foot"


def test_a_street_address_is_a_place(client, db):
    row = place(db, "place.kind = 'bank'")
    street = db.execute("SELECT name FROM map_street WHERE id = ?", (row["street_id"],)).fetchone()[0]
    answer = client.get("/directions", query_string={"from": f"{row['number']} {street}, {row['town']}"})
    assert answer.location.startswith(f"/directions?from={row['name'].replace(' ', '+')}%2C+{row['town'][:4]}")


# Search and lists ------------------------------------------------------------------------------------------


def test_a_search_shows_a_town_before_its_places(client):
    names = re.findall(
        r'<li><a href="/(?:node|way|relation)/\d+">([^<]+)</a> <span', client.get("/search?q=dunmere").text
    )
    assert names[0] == "Dunmere"
    assert len(names) == 10


def test_words_of_a_search_must_all_fit(client, db):
    count = db.execute(
        "SELECT count(*) FROM map_place JOIN map_town AS town ON town.id = town_id "
        "WHERE kind = 'pharmacy' AND town.name = 'Dunmere'"
    ).fetchone()[0]
    assert f"{count} results for" in client.get("/search?q=pharmacies+in+Dunmere").text


def test_branches_of_a_chain_share_a_name_in_different_towns(db):
    names = [row[0] for row in db.execute("SELECT name FROM map_place GROUP BY name HAVING count(*) > 1")]
    assert sorted(names) == ["City Pharmacy", "Corner Cafe", "Family Kitchen", "Rapid Fuel", "Union Bank"]
    towns = db.execute("SELECT count(DISTINCT town_id) FROM map_place WHERE name = 'Corner Cafe'").fetchone()[0]
    assert towns == 6


def test_the_type_filter_stands_in_the_address(client):
    page = client.get("/search?q=dunmere&type=town").text
    assert "1 result for" in page
    assert '<option value="town" selected>' in page


def test_pages_of_results_have_an_address_each(client):
    first = client.get("/search?q=cafe").text
    second = client.get("/search?q=cafe&p=2").text
    assert 'href="/search?q=cafe&amp;p=2"' in first
    assert "Page 2 of" in second
    assert not set(re.findall(r"/node/\d+", first)) & set(re.findall(r"/node/\d+", second))


def test_an_empty_search_says_so(client):
    assert "Nothing was found for <b>xyzzy</b>" in client.get("/search?q=xyzzy").text
    assert client.get("/search").status_code == 200


def test_a_word_of_a_search_may_be_the_beginning_of_one(client):
    count = re.search(r"(\d+) results for", client.get("/search?q=pharmacies+in+Dunmere").text)[1]
    assert f"{count} results for" in client.get("/search?q=pharm+dunm").text
    assert "Nothing was found" in client.get("/search?q=unmere").text


def test_a_house_number_must_be_equal(client):
    assert "Nothing was found" in client.get("/search?q=1+Dunmere").text


def test_a_category_is_filtered_by_its_address(client, db):
    rows = db.execute(
        "SELECT place.id FROM map_place AS place JOIN map_town AS town ON town.id = town_id "
        "WHERE kind = 'restaurant' AND town.name = 'Carrow Hill' AND wheelchair = 'no' ORDER BY place.id"
    ).fetchall()
    page = client.get("/category/restaurant?town=Carrow+Hill&wheelchair=no").text
    assert len(rows) > 1
    assert sorted(re.findall(r'href="/node/(\d+)"', page)) == [str(row[0]) for row in rows]


def test_a_category_is_sorted_by_its_address(client, db):
    names = {"name": "ORDER BY name", "oldest": "ORDER BY founded, id"}
    for sort, order in names.items():
        rows = db.execute(f"SELECT id FROM map_place WHERE kind = 'hotel' {order} LIMIT 10").fetchall()
        page = client.get(f"/category/hotel?sort={sort}", follow_redirects=True).text
        assert re.findall(r'href="/node/(\d+)"', page) == [str(row[0]) for row in rows], sort


def test_a_filter_left_empty_is_not_in_the_address(client):
    answer = client.get("/category/cafe?town=dunmere&wheelchair=&sort=")
    assert answer.location == "/category/cafe?town=Dunmere"


def test_an_unknown_town_in_a_filter_is_an_error_that_keeps_the_input(client):
    page = client.get("/category/cafe?town=Atlantis").text
    assert "No town is called Atlantis." in page and 'value="Atlantis"' in page


def test_near_places_come_by_distance(client, db):
    row = place(db, "place.kind = 'hotel'")
    metres = [
        float(number) * (1 if unit == "m" else 1000)
        for number, unit in re.findall(r"([\d.]+) (k?m)</span>", client.get(f"{row['path']}/nearby").text)
    ]
    assert len(metres) == 10
    assert metres == sorted(metres)


# Places, notes, saved places ----------------------


def test_a_place_has_one_address(client, db):
    row = place(db, "shape = 'way'")
    assert client.get(f"/way/{row['id']}").status_code == 200
    assert client.get(f"/node/{row['id']}").status_code == 404


def test_the_website_opens_in_a_new_tab(client, db):
    row = place(db, "place.kind = 'museum'")
    assert f'href="/site/{row["id"]}" target="_blank"' in client.get(row["path"]).text
    assert f"in {row['founded']}." in client.get(f"/site/{row['id']}").text


def test_a_note_is_stored_and_shown(client, db, database, pristine):
    row = place(db, "place.kind = 'library'")
    answer = send(client, f"{row['path']}/note", f"{row['path']}/note", author=" Ada  Dahl ", body="The door is red.")
    assert answer.status_code == 302 and answer.location == row["path"]
    page = client.get(row["path"]).text
    assert "Your note was added." in page and "The door is red." in page
    (change,) = world.changes(pristine, database)
    assert (change["table"], change["op"]) == ("map_note", "insert")
    wanted = {"place_id": row["id"], "author": "Ada Dahl", "body": "The door is red.", "status": "open"}
    assert wanted.items() <= change["after"].items()


@pytest.mark.parametrize(
    ("author", "body", "error"),
    [
        ("", "The door is red.", "Give your name"),
        ("A" * 41, "The door is red.", "Give your name"),
        ("Ada Dahl", "Hm", "5 to 200 letters"),
        ("Ada Dahl", "x" * 201, "5 to 200 letters"),
    ],
)
def test_a_bad_note_is_refused_and_keeps_what_was_typed(client, db, database, pristine, author, body, error):
    path = place(db, "place.kind = 'library'")["path"] + "/note"
    page = send(client, path, path, author=author, body=body)
    assert page.status_code == 200
    assert error in page.text and f'value="{author}"' in page.text and f">{body}</textarea>" in page.text
    assert world.changes(pristine, database) == []


def test_a_form_without_its_token_changes_nothing(client, db, database, pristine):
    row = place(db, "place.kind = 'library'")
    assert client.post("/save", data={"place": row["id"], "list": "Work"}).status_code == 400
    assert world.changes(pristine, database) == []


def test_saving_twice_moves_the_place(client, db, database, pristine):
    row = place(db, "place.id NOT IN (SELECT place_id FROM map_favorite)")
    for name in ("Work", "To visit"):
        send(client, row["path"], "/save", place=row["id"], list=name)
    (change,) = world.changes(pristine, database)
    assert change["op"] == "insert" and change["after"]["list"] == "To visit"


def test_removing_a_saved_place_asks_first_and_deletes_one_row(client, db, database, pristine):
    row = place(db, "place.id IN (SELECT place_id FROM map_favorite)")
    assert f"confirm('Remove {row['name']} from your saved places?')" in client.get(row["path"]).text
    answer = send(client, row["path"], f"/saved/{row['id']}/remove")
    assert answer.location == "/saved"
    (change,) = world.changes(pristine, database)
    assert (change["op"], change["before"]["place_id"]) == ("delete", row["id"])


def test_an_unknown_list_is_refused(client, db, database, pristine):
    row = place(db, "place.id NOT IN (SELECT place_id FROM map_favorite)")
    send(client, row["path"], "/save", place=row["id"], list="Secret")
    assert "Choose a list." in client.get(row["path"]).text
    assert world.changes(pristine, database) == []


def test_resolving_a_note_closes_it_once(client, db, database, pristine):
    note = db.execute("SELECT * FROM map_note WHERE status = 'open' ORDER BY id").fetchone()
    path = place(db, f"place.id = {note['place_id']}")["path"]
    assert "confirm('Resolve this note?')" in client.get(path).text
    send(client, path, f"/note/{note['id']}/resolve")
    (change,) = world.changes(pristine, database)
    assert (change["op"], change["key"], change["after"]["status"]) == (
        "update",
        {"id": note["id"]},
        "closed",
    )
    assert f"/note/{note['id']}/resolve" not in client.get(path).text


# The whole site ------------------------------------------------------------------------------------------


def test_every_page_works_on_a_read_only_database(pristine, db):
    app.secret_key = "test"
    client = app.test_client()
    client.environ_base.update({DATABASE: str(pristine), READ_ONLY: True})
    before = pristine.read_bytes()
    row = place(db, "place.kind = 'cafe'")
    town = f"/relation/{row['town_id']}"
    tiles = ["/tiles/region.svg", f"/tiles/town-{row['town_id']}.svg"]
    lists = ["/", "/about", "/search?q=cafe", "/categories", "/category/cafe", "/towns", "/saved", "/notes"]
    own = [row["path"], f"{row['path']}/nearby", f"{row['path']}/note", f"/site/{row['id']}", town]
    routes = ["/directions", "/directions?from=Dunmere&to=Northam&mode=foot"]
    for path in [*lists, *own, *routes, *tiles]:
        assert client.get(path).status_code == 200, path
    assert pristine.read_bytes() == before


def test_the_drawn_map_holds_no_text(client):
    for path in ("/", "/directions?from=Dunmere&to=Northam&mode=foot"):
        (layer,) = re.findall(r'<svg class="layer".*?</svg>', client.get(path).text, re.S)
        assert "<text" not in layer and 'aria-hidden="true"' in layer


def test_unknown_addresses_are_not_found(client):
    for path in ("/node/1", "/relation/1", "/site/1", "/category/castle", "/tiles/town-1.svg", "/node/x"):
        assert client.get(path).status_code == 404, path


def test_the_data_are_large_enough_and_the_same_for_a_seed(db, tmp_path, pristine):
    assert db.execute("SELECT count(*) FROM map_place").fetchone()[0] >= 180
    assert db.execute("SELECT count(*) FROM map_road").fetchone()[0] >= 90
    world.build(tmp_path / "again.db")
    assert world.changes(pristine, tmp_path / "again.db") == []


# Tasks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_fills_its_splits(family, db):
    """12 for train and 5 for test, or 7 for a held-out one; the N/A family has at most 7 in all."""
    pools = Counter()
    for instance in family.instances(db):
        splits = {entity_split(entity) for entity in instance.entities}
        pools[splits.pop() if len(splits) == 1 else "between"] += 1
    if family.name == "map.missing":
        assert 3 <= pools.total() <= 7
    elif family.held_out:
        assert pools.total() >= 7
    else:
        assert pools["train"] >= 12 and pools["test"] >= 5


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_wording_can_be_filled_in(family, db):
    assert len(family.wordings) >= 3
    for instance in family.instances(db):
        assert all("{" not in wording.format(**instance.values) for wording in family.wordings)
        assert instance.entities and 1 <= instance.requirements <= 5


def test_the_places_of_the_impossible_tasks_are_not_found(client):
    for name in instances.MISSING:
        assert "Nothing was found" in client.get("/search", query_string={"q": name}).text


def test_no_answer_is_right_for_half_of_a_familys_tasks(db):
    for family in FAMILIES:
        if family.kind == "retrieve" and family.name != "map.missing":
            answers = Counter(str(i.eval["reference_answers"]) for i in family.instances(db))
            assert answers.most_common(1)[0][1] / answers.total() < 0.35, family.name
