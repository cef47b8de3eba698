"""Small pages at the routes of WebArena's sites, so that its tasks are played and graded without its 600 GB of images.

``StandIn`` serves six sites on 127.0.0.2 and so on (a host each, so that each has its cookies): what a task's grader
reads is where the real site has it, and the forms that lead there work. Signing in is needed where the real site needs
it. The shop answers the REST requests of the graders' helpers, and ``/reset`` and ``/status`` stand for ``env-ctrl``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape

import pytest
from flask import Flask, Response, jsonify, redirect, request
from werkzeug.serving import make_server

from webrl_lite.envs import webarena, webarena_sites
from webrl_lite.envs.webarena_sites import ACCOUNTS, LIMITS, LOGINS, SITES

COOKIES = {"shopping": "PHPSESSID", "shopping_admin": "admin", "reddit": "PHPSESSID", "gitlab": "_gitlab_session"}
PATHS = {"shopping_admin": "/admin", "wikipedia": "/wikipedia_en_all/A/Landing"}
CUSTOMER, ADMIN_KEY = "emma.lopez@gmail.com", "a-rest-token"

Page = str | Response


@contextlib.contextmanager
def short_patience() -> Iterator[None]:
    """Let graders wait 2 s for a page to show what is asked, where hosted sites get 8: a stand-in answers at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (webarena, webarena_sites):
            patch.setattr(module, "LIMITS", dataclasses.replace(LIMITS, settle=2.0))
        yield


def html(*parts: str, title: str = "Page") -> str:
    """Return a page with a heading."""
    return f"<!doctype html><title>{escape(title)}</title><body><h1>{escape(title)}</h1>{''.join(parts)}</body>"


def form(action: str, button: str, *fields: str) -> str:
    """Return a form that posts."""
    return f'<form method="post" action="{escape(action)}">{"".join(fields)}<button>{escape(button)}</button></form>'


def text(name: str, label: str, value: str = "", kind: str = "text") -> str:
    """Return a labelled field."""
    return f'<label>{escape(label)} <input type="{kind}" name="{name}" value="{escape(value)}"></label>'


class StandIn:
    """The sites. ``addresses`` are as a user has them in environment variables; ``close`` ends them."""

    def __init__(self, same_host: bool = False):
        """Start the servers; with ``same_host`` all are on 127.0.0.1, where two sites share a cookie's name."""
        self.sign_ins: Counter[str] = Counter()
        self.resets: list[str] = []
        self.broken: dict[str, int] = {}
        """Site to the status with which it answers everything."""
        self.seen: list[str] = []
        """``site METHOD /path`` of every request."""
        self.reset_answer: dict[str, object] = {"success": True, "message": "done"}
        self.sessions: dict[str, str] = {}
        self.busy = 0
        """How often ``/status`` says that the site is not ready yet."""
        self.clear()
        self._servers, self.addresses = [], {}
        for number, site in enumerate((*SITES, "control"), start=2):
            host = "127.0.0.1" if same_host else f"127.0.0.{number}"
            server = make_server(host, 0, self._app(site), threaded=True)
            self._servers.append(server)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            self.addresses[site] = f"http://{host}:{server.server_port}{PATHS.get(site, '')}"
        self.control = self.addresses.pop("control")

    def clear(self) -> None:
        """Put the content of all sites into its initial state."""
        self.cart: list[str] = []
        self.orders = [{"increment_id": "000000180", "entity_id": 180, "items": "Screen protector 12.99"}]
        older = {"nickname": "Ann", "ratings": [{"percent": 60}], "title": "o", "detail": "e"}
        newer = {"nickname": "Mia", "ratings": [{"percent": 40}], "title": "t", "detail": "d"}
        self.reviews = {"B00J8RZL7I": [older, newer]}
        self.product = {"sale": "0"}
        self.bio, self.subscribed, self.votes = "Nothing here", [], set()
        self.posts: dict[str, tuple[str, str]] = {}
        self.comments: dict[str, list[str]] = {}
        self.members = {"byteblaze/dotfiles": [("byteblaze", "Owner")]}
        self.files: dict[str, str] = {}

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def origin(self, site: str) -> str:
        """Return a site's address without its path."""
        return self.addresses[site].removesuffix(PATHS.get(site, ""))

    def sign_out(self, site: str) -> None:
        """End all sessions of a site, as a restart of the real one does."""
        self.sessions = {token: where for token, where in self.sessions.items() if where != site}

    # One site

    def _app(self, site: str) -> Flask:
        app = Flask(site)
        pages: Callable[[str], Page | None] = getattr(self, f"_{site}", lambda path: None)

        @app.route("/", defaults={"path": ""}, methods=["GET", "POST"])
        @app.route("/<path:path>", methods=["GET", "POST"])
        def answer(path: str) -> Page | tuple[str, int]:
            path = "/" + path
            self.seen.append(f"{site} {request.method} {path}")
            if site in self.broken:
                return "The site is broken.", self.broken[site]
            if site in LOGINS:
                page = self._login(site, path)
                if page is not None:
                    return page
            page = pages(path)
            if page is None and request.method == "POST":
                return "Not found", 404
            return html(f"<p>{escape(path)}</p>", title=site) if page is None else page

        return app

    def signed_in(self, site: str) -> bool:
        """Whether the request comes with a session."""
        return self.sessions.get(request.cookies.get(COOKIES[site], "")) == site

    def _login(self, site: str, path: str) -> Page | None:
        """Answer the sign-in form, and send there whoever is not signed in and has to be."""
        login, account = LOGINS[site], ACCOUNTS[site]
        where = PATHS.get(site, "") + login.path
        private = {
            "shopping": ("/wishlist/", "/checkout/", "/sales/", "/review/"),
            "shopping_admin": ("/admin",),
            "reddit": (f"/user/{account.username}/", "/submit/", "/vote/", "/comment/", "/subscribe/"),
            "gitlab": ("/-/", "/dashboard", "/projects/new", "/byteblaze"),
        }[site]
        if request.method == "POST" and login.user in request.form:
            right = (request.form[login.user], request.form[login.password]) == (account.username, account.password)
            if right and request.form.get("token") == "csrf":
                token = secrets.token_hex(8)
                self.sessions[token] = site
                self.sign_ins[site] += 1
                response = redirect("/admin/dashboard" if site == "shopping_admin" else "/")
                response.set_cookie(COOKIES[site], token, path=PATHS.get(site, "/"), httponly=True)
                return response
            return self._form(site, where, "The account sign-in was incorrect.")
        if path.rstrip("/") == where.rstrip("/") and not self.signed_in(site):
            return self._form(site, where)
        if path.startswith(private) and not self.signed_in(site):
            return self._form(site, path) if site == "shopping_admin" else redirect(where)
        return None

    def _form(self, site: str, action: str, error: str = "") -> str:
        login = LOGINS[site]
        hidden = '<input type="hidden" name="token" value="csrf">'
        fields = text(login.user, "User"), text(login.password, "Password", kind="password"), hidden
        return html(f"<p>{error}</p>", form(action, "Sign In", *fields), title="Sign in")

    # The pages; None is a plain page that shows its path

    def _shopping(self, path: str) -> Page | None:
        if path.startswith("/rest/"):
            return self._rest(path)
        if path.endswith(".html"):
            name = path[1:-5].replace("-", " ").title()
            return html(form("/checkout/cart/add", "Add to Cart", text("name", "Product", name)), title=name)
        if path == "/catalogsearch/result/":
            return html(f"<p>Results for {escape(request.args.get('q', ''))}</p>", title="Search")
        if path == "/checkout/cart/add":
            self.cart.append(request.form["name"])
            return redirect("/checkout/cart/")
        if path.startswith("/checkout/cart"):
            return html("".join(f"<p>{escape(name)}</p>" for name in self.cart), title="Shopping Cart")
        if path == "/contact":
            box = '<textarea name="comment" title="What’s on your mind?"></textarea>'
            return html(form("/contact/post", "Submit", f"<label>Message {box}</label>"), title="Contact Us")
        if path.startswith("/sales/order/reorder"):
            number = self.orders[-1]["entity_id"] + 7  # numbers of abandoned orders are lost
            self.orders.append({"increment_id": f"{number - 3:09}", "entity_id": number, "items": "Remover B0738JQG6Q"})
            return redirect(f"/sales/order/view/order_id/{number}/")
        if path.startswith("/sales/order/view/order_id/"):
            found = [o["items"] for o in self.orders if str(o["entity_id"]) == path.rstrip("/").rsplit("/", 1)[1]]
            if not found:
                return Response("No such order", 404)
            table = f'<table class="order-details-items ordered"><tr><td>{found[0]}</td></tr></table>'
            return html(table, form("/sales/order/reorder", "Reorder"), title="Order")
        if path.startswith("/review/product/") and request.method == "POST":
            review = {"nickname": request.form["nickname"], "ratings": [{"percent": 20 * int(request.form["stars"])}]}
            self.reviews[path.rsplit("/", 1)[1]].append({**review, "title": "New", "detail": "Fine"})
            return html("<p>You submitted your review for moderation.</p>", title="Review")
        if path.startswith("/review/product/"):
            fields = text("nickname", "Nickname"), text("stars", "Stars")
            return html(form(path, "Submit Review", *fields), title="Review")
        return None

    def _rest(self, path: str) -> Response:
        if path == "/rest/default/V1/integration/admin/token":
            right = request.json == {"username": "admin", "password": "admin1234"}
            return jsonify(ADMIN_KEY) if right else Response('{"message": "wrong"}', 401)
        if request.headers.get("Authorization") != f"Bearer {ADMIN_KEY}":
            return Response('{"message": "not authorized"}', 401)
        if path == "/rest/V1/orders":
            return jsonify({"items": self.orders[::-1][: int(request.args["searchCriteria[pageSize]"])]})
        sku = path.split("/")[4]
        if path.endswith("/reviews"):
            return jsonify(self.reviews.get(sku, []))
        return jsonify({"custom_attributes": [{"attribute_code": "url_key", "value": f"product-{sku.lower()}"}]})

    def _shopping_admin(self, path: str) -> Page | None:
        if path.startswith("/admin/catalog/product/edit"):
            if request.method == "POST":
                self.product["sale"] = request.form["product[sale]"]
            return html(form(path, "Save", text("product[sale]", "Sale", self.product["sale"])), title="Product")
        if path.startswith("/admin/sales_rule/promo_quote"):
            hidden = '<label>Discount <input name="discount_amount"></label>'
            # the part is built when it is opened for the first time, as the real form does
            script = "const part = this.nextElementSibling; part.innerHTML ||= this.dataset.inside"
            box = f'<b class="admin__collapsible-title" data-inside="{escape(hidden)}" onclick="{script}">Actions</b>'
            name = '<label>Rule name <input name="name"></label>'
            return html(name, f'<div data-index="actions">{box}<div></div></div>', title="New rule")
        if path.startswith("/admin/sales/order"):
            chosen = escape(request.args.get("status", "All"))
            return html(f'<div class="admin__data-grid-filters-current">Status: {chosen}</div>', title="Orders")
        return None

    def _reddit(self, path: str) -> Page | None:
        name = ACCOUNTS["reddit"].username
        if path == f"/user/{name}/edit_biography":
            if request.method == "POST":
                self.bio = request.form["bio"]
                return redirect(f"/user/{name}")
            return html(form(path, "Save", text("bio", "Biography", self.bio)), title="Biography")
        if path == f"/user/{name}":
            return html(f'<div class="user-bio__biography">{escape(self.bio)}</div>', title=name)
        if path.startswith("/submit/"):
            if request.method == "POST":
                where = f"/f/{path[8:]}/{9000 + len(self.posts)}"
                self.posts[where] = request.form["title"], request.form["body"]
                return redirect(where + "/new-post")
            return html(form(path, "Create submission", text("title", "Title"), text("body", "Body")), title="Create")
        if path.startswith(("/vote/", "/comment/", "/subscribe/")) and request.method == "POST":
            deed, _, where = path[1:].partition("/")
            if deed == "vote":
                self.votes.add("/" + where)
            elif deed == "comment":
                self.comments.setdefault("/" + where, []).append(request.form["comment"])
            else:
                self.subscribed.append(where.rsplit("/", 1)[1])
            return redirect("/" + where)
        if path == "/":
            return html(f'<div id="sidebar"><section>{" ".join(self.subscribed)}</section></div>', title="Front page")
        parts = path.strip("/").split("/")
        if parts[0] == "f" and len(parts) == 2:
            return html(form(f"/subscribe{path}", "Subscribe"), f'<a href="/submit/{parts[1]}">Submit</a>', title=path)
        if parts[0] == "f" and len(parts) > 2:
            title, body = self.posts.get("/" + "/".join(parts[:3]), ("A post", "Its text"))
            vote = "vote vote--user-upvoted" if path in self.votes else "vote"
            comments = "".join(f'<p class="comment__body">{escape(c)}</p>' for c in self.comments.get(path, ()))
            return html(
                f'<div class="submission__vote"><form class="{vote}" method="post" action="/vote{path}">'
                "<button>Upvote</button></form></div>"
                f'<div class="submission__inner"><h2 class="submission__title">{escape(title)}</h2>'
                f'<div class="submission__body">{escape(body)}</div></div>',
                form(f"/comment{path}", "Post", text("comment", "Comment")),
                comments,
            )
        return None

    def _gitlab(self, path: str) -> Page | None:
        if path.endswith("/-/project_members"):
            project = path.strip("/").removesuffix("/-/project_members")
            members = self.members.setdefault(project, [("byteblaze", "Owner")])
            if request.method == "POST":
                members.append((request.form["user"], request.form["role"]))
            rows = "".join(
                f'<tr><td data-label="Account"><span class="gl-avatar-labeled-sublabel">@{escape(user)}</span></td>'
                f'<td class="col-max-role"><span>{escape(role)}</span></td></tr>'
                for user, role in members
            )
            fields = text("user", "Username"), text("role", "Role")
            return html(f"<table>{rows}</table>", form(path, "Invite", *fields), title="Members")
        if path == "/projects/new" and request.method == "POST":
            self.files[f"/byteblaze/{request.form['name']}/-/raw/main/README.md"] = request.form["readme"]
            return redirect(f"/byteblaze/{request.form['name']}")
        if path == "/projects/new":
            fields = text("name", "Project name"), text("readme", "README")
            return html(form(path, "Create project", *fields), title="New project")
        if path in self.files:
            return Response(self.files[path], mimetype="text/plain")
        if "/-/raw/" in path:
            return Response("Not found", 404)
        return None

    def _map(self, path: str) -> Page | None:
        start, end = escape(request.args.get("from", "")), escape(request.args.get("to", ""))
        engine = int(request.args.get("engine", 0))
        options = "".join(f"<option{' selected' * (n == engine)}>{n}</option>" for n in range(3))
        fields = f'<input name="route_from" value="{start}"><input name="route_to" value="{end}">'
        routes = f'<div id="content">{fields}<select class="routing_engines">{options}</select></div>'
        found = f'<div id="sidebar_content">{escape(request.args.get("query", ""))}</div>'
        return html(routes, found, title="Map")

    def _control(self, path: str) -> Page | tuple[Response, int]:
        if path == "/reset" and request.method == "POST":
            self.resets.append("env-ctrl")
            self.clear()
            self.sessions.clear()
            return jsonify(self.reset_answer)
        if path == "/status":
            self.busy -= 1
            return jsonify({"success": self.busy < 0, "message": "ready" if self.busy < 0 else "starting"})
        return Response("Not found", 404)
