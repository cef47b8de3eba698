"""The sites of WebArena that a user hosts: addresses, health, signing in, resets, and the graders' helper functions.

Reads the environment variables that WebArena's users already have; talks to the sites by HTTP, and signs in through a
browser of its own. Nothing here knows of tasks.

*Addresses.* For each site, in this order: the argument; ``WA_SHOPPING`` (BrowserGym's name); ``SHOPPING`` (WebArena's
and VisualAgentBench's). Empty, ``todo`` and ``PASS`` mean that the site is not hosted. Several addresses, separated by
commas, are copies of the site: worker 0 plays on the first, and so on. A site with one address serves all workers,
who then see each other's writes.

*Signing in.* With the benchmark's published accounts, through the site's own form, once a worker; before each episode
a page that only a signed-in user sees is asked for, and if it shows the form, the session is renewed. Graders read
with sessions of their own, so an agent that signs out changes nothing for them.

Source: ``auto_login.py`` and ``env_config.py`` of web-arena-x/webarena (``libwebarena`` 0.0.5); ports of
ServiceNow/webarena-verified 1.2.3. Differs from both: they renew by a subprocess
before every task, and keep one session for all workers.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError

from webrl_lite.browser import Browser, BrowserError, Limits
from webrl_lite.envs.webarena_hooks import Account, Cookie, ask, call_helper, reset_container, run_command
from webrl_lite.evaluators import Call

log = logging.getLogger(__name__)

LIMITS = Limits(settle=8.0, navigation=60.0, hang=15.0, step=90.0, observe=30.0)
"""Patience with real sites: a shop or a GitLab that was just started answers its first pages slowly."""


@dataclass(frozen=True)
class Login:
    """How one signs in to a site: names of form fields, which the server needs and skins do not change."""

    path: str
    """Where the form is, below the site's address."""
    user: str
    password: str
    probe: str
    """A page that only a signed-in user sees; ``{username}`` is filled in."""


_MAGENTO = ("login[username]", "login[password]")
LOGINS: dict[str, Login] = {
    "shopping": Login("/customer/account/login/", *_MAGENTO, "/wishlist/"),
    "shopping_admin": Login("", *_MAGENTO, "/dashboard"),
    "reddit": Login("/login", "_username", "_password", "/user/{username}/account"),
    "gitlab": Login("/users/sign_in", "user[login]", "user[password]", "/-/profile"),
}
"""The sites that have accounts, and so a state that tasks change."""
ACCOUNTS: dict[str, Account] = {
    "shopping": Account("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": Account("admin", "admin1234"),
    "reddit": Account("MarvelsGrantMan136", "test1234"),
    "gitlab": Account("byteblaze", "hello1234"),
}
"""The accounts that the benchmark publishes."""
PUBLIC_HOSTS: dict[str, str] = {
    "shopping": "onestopmarket.com",
    "shopping_admin": "luma.com",
    "reddit": "reddit.com",
    "gitlab": "gitlab.com",
    "map": "openstreetmap.org",
    "wikipedia": "wikipedia.org",
    "homepage": "homepage.com",
}
"""All sites, with the host under which WebArena's prompts speak of them; an agent may go to either."""
SITES = tuple(PUBLIC_HOSTS)
CONTROL_PORTS = {
    **{"shopping": 7771, "shopping_admin": 7781, "reddit": 9998},
    **{"gitlab": 8024, "wikipedia": 8889, "map": 3001},
}
"""Ports at which WebArena-Verified publishes ``env-ctrl``, unless ``SHOPPING_ENV_CTRL`` and so on say otherwise."""
MAP_PORTS = (8080, 8085, 5000, 5001, 5002)
"""Tiles, search and the three routers of WebArena's map, which its pages ask for on the map's own host."""


@dataclass(frozen=True)
class Health:
    """What was found of one site."""

    site: str
    address: str
    problem: str = ""
    """Empty if all is well."""
    seconds: float = 0.0
    signed_in: str = ""
    """Whose session works, where that was tried."""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.site:14} FAILED  {self.address} {self.problem}".rstrip()
        who = f", signed in as {self.signed_in}" if self.signed_in else ""
        return f"{self.site:14} ok      {self.address} answered in {self.seconds:.1f} s{who}"


# --- addresses ---------------------------------------------------------------------------------------------


def addresses_of(
    environ: Mapping[str, str] | None = None, given: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the addresses of the hosted sites, see the module's text for their order.

    Args:
        environ: environment variables; the process's own if None.
        given: addresses by site that go before them, in the same form.

    Raises:
        ValueError: an address is none, or names a site that there is not.
    """
    environ = os.environ if environ is None else environ
    for site in given or {}:
        if site not in SITES:
            raise ValueError(f"`addresses` must be of {', '.join(SITES)}, got {site!r}.")
    found: dict[str, tuple[str, ...]] = {}
    for site in SITES:
        sources = [("addresses", (given or {}).get(site))]
        sources += [(name, environ.get(name)) for name in (f"WA_{site.upper()}", site.upper())]
        name, text = next(((name, text) for name, text in sources if text), ("", ""))
        if text.strip().casefold() not in ("", "todo", "pass"):
            found[site] = tuple(_address(name, part) for part in text.split(","))
    return found


def _address(name: str, text: str) -> str:
    text = text.strip()
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or parts.query or parts.fragment:
        raise ValueError(f"`{name}` must be like http://127.0.0.1:7770, got {text!r}.")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def origin(address: str) -> str:
    """Return ``scheme://host:port`` of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def twins(address: str) -> tuple[str, ...]:
    """Return an origin and, for this machine, its other spelling: a site redirects to the one that it was set up with.

    ``localhost`` and ``127.0.0.1`` are two hosts for a browser; cookies of one are not sent to the other.
    """
    parts = urlsplit(address)
    other = {"localhost": "127.0.0.1", "127.0.0.1": "localhost"}.get(parts.hostname or "")
    first = origin(address)
    return (first, first.replace(parts.hostname, other, 1)) if other else (first,)


# --- the sites ---------------------------------------------------------------------------------------------


class HostedSites:
    """The hosted sites with their sessions; safe to use from several threads."""

    def __init__(
        self,
        addresses: Mapping[str, Sequence[str]],
        *,
        accounts: Mapping[str, Account] | None = None,
        reset: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the sites; nothing is asked of them yet.

        Args:
            addresses: of each hosted site, as ``addresses_of`` gives them.
            accounts: who signs in, in place of the published accounts.
            reset: "" for none, ``env-ctrl``, or a command. It runs with the sites' addresses in ``SHOPPING`` and so on,
                and with ``WEBRL_LITE_SITES``, the names of those to be reset.
            environ: environment variables, for ``SHOPPING_ENV_CTRL`` and so on.
        """
        self.addresses = {site: tuple(some) for site, some in addresses.items()}
        self.accounts = {**ACCOUNTS, **(accounts or {})}
        self.reset_by = reset
        self._environ = os.environ if environ is None else environ
        self._jars: dict[tuple[str, str, int | None], list[Cookie]] = {}
        self._lock = threading.RLock()
        self._told: set[str] = set()

    def address(self, site: str, worker: int = 0) -> str:
        """Return a site's address for one worker.

        Raises:
            ValueError: the site is not hosted, or there are copies of it and not enough for this worker.
        """
        copies = self.addresses.get(site, ())
        if not copies:
            raise ValueError(f"`{site.upper()}` must be set to the address of {site}, or `WA_{site.upper()}`.")
        if len(copies) > 1 and worker >= len(copies):
            raise ValueError(f"worker {worker} has no copy of {site}: `{site.upper()}` names {len(copies)}.")
        if len(copies) == 1 and worker > 0 and site in LOGINS:
            self._tell(f"several workers play on one {site} and see each other's writes; give each a copy of its own")
        return copies[worker if len(copies) > 1 else 0]

    def shared(self, site: str) -> bool:
        """Whether all workers play on one copy of a site that tasks change."""
        return site in LOGINS and len(self.addresses.get(site, ())) == 1

    def placeholders(self, worker: int = 0) -> dict[str, str]:
        """Return ``__SHOPPING__`` and so on with their addresses for one worker."""
        return {f"__{site.upper()}__": self.address(site, worker) for site in self.addresses}

    def allowed(self, worker: int = 0) -> dict[str, str]:
        """Return the origins that a browser may reach, by all names that an agent may give them.

        The last name of an origin is the one that the agent sees: host and port, so that a link which it copies into
        an answer or a post is a real one.
        """
        names: dict[str, str] = {}
        for site in self.addresses:
            address = self.address(site, worker)
            names[site] = names[PUBLIC_HOSTS[site]] = origin(address)
        for site in self.addresses:
            address = self.address(site, worker)
            around = list(twins(address))
            if site == "map":
                around += [f"http://{urlsplit(address).hostname}:{port}" for port in MAP_PORTS]
            names.update({urlsplit(one).netloc: one for one in around})
        for text in self._environ.get("WEBRL_LITE_ALSO_ALLOWED", "").split(","):
            if text.strip():  # a map's tiles and routers on other hosts
                one = origin(_address("WEBRL_LITE_ALSO_ALLOWED", text))
                names[urlsplit(one).netloc] = one
        return names

    def alive(self, sites: Iterable[str], worker: int = 0) -> bool:
        """Whether all the sites answer; a server error is no answer."""
        try:
            return all(
                ask(self.address(s, worker) + (LOGINS[s].path if s in LOGINS else "")).status < 500 for s in sites
            )
        except BrowserError:
            return False

    def health(self, sites: Iterable[str] = SITES, *, sign_in: bool = False) -> list[Health]:
        """Look at every copy of the given sites, one line each.

        Args:
            sites: names; one that is not hosted is a problem.
            sign_in: whether to sign in as well, where the site has accounts.
        """
        found = []
        for site in sites:
            if site not in self.addresses:
                found.append(
                    Health(site, "", f"is not hosted: neither `WA_{site.upper()}` nor `{site.upper()}` is set")
                )
                continue
            for number, address in enumerate(self.addresses[site]):
                found.append(self._look(site, address, number, sign_in))
        return found

    def _look(self, site: str, address: str, worker: int, sign_in: bool) -> Health:
        begin = time.perf_counter()
        try:
            answer = ask(address)
            seconds = time.perf_counter() - begin
            if answer.status >= 400:
                return Health(site, address, f"answered with status {answer.status}")
            if origin(answer.url) not in twins(address):
                where = origin(answer.url)
                return Health(site, address, f"sends to {where}: set the site's base URL, or `{site.upper()}` to that")
            if site == "shopping_admin" and not urlsplit(address).path:
                return Health(site, address, "has no path; the panel is usually at /admin")
            if sign_in and site in LOGINS:
                self.cookies([site], worker)
                return Health(site, address, "", seconds, self.accounts[site].username)
            return Health(site, address, "", seconds)
        except BrowserError as error:
            return Health(site, address, str(error))

    # Sessions

    def cookies(self, sites: Iterable[str], worker: int, *, grader: bool = False) -> list[Cookie]:
        """Return the cookies of signed-in sessions, renewed where they have expired.

        Args:
            sites: names; those without accounts need none.
            worker: whose copies of the sites.
            grader: the graders' own sessions instead of the worker's.

        Raises:
            BrowserError: a site does not answer, or refuses the account.
        """
        wanted = [site for site in dict.fromkeys(sites) if site in LOGINS]
        with self._lock:
            keys = {site: (site, self.address(site, worker), None if grader else worker) for site in wanted}
            missing = [
                s for s, key in keys.items() if key not in self._jars or self._expired(s, key[1], self._jars[key])
            ]
            if missing:
                with Browser() as browser:
                    for site in missing:
                        self._jars[keys[site]] = browser.call(self._sign_in(browser, site, keys[site][1]))
            return self._merged({site: self._jars[key] for site, key in keys.items()})

    def _expired(self, site: str, address: str, jar: Sequence[Cookie] | None) -> bool:
        if jar is None:
            return True
        login = LOGINS[site]
        answer = ask(address + login.probe.format(username=self.accounts[site].username), cookies=jar)
        if answer.status >= 500:
            raise BrowserError(f"{site} answered with status {answer.status}.")
        return answer.status >= 400 or f'name="{login.user}"' in answer.text

    async def _sign_in(self, browser: Browser, site: str, address: str) -> list[Cookie]:
        login, account = LOGINS[site], self.accounts[site]
        session = await browser.open(allowed=twins(address), limits=LIMITS)
        try:
            await session.visit([address + login.path])
            page = session.tabs.active
            field = page.locator(f'input[name="{login.user}"]').first
            await field.fill(account.username, timeout=LIMITS.settle * 1000)
            field = page.locator(f'input[name="{login.password}"]').first
            await field.fill(account.password, timeout=LIMITS.settle * 1000)
            since = time.time() * 1000
            await field.press("Enter", timeout=LIMITS.settle * 1000)
            await session.tabs.settle(since)
            jar = [dict(cookie) for cookie in await session.cookies()]
        except PlaywrightError as error:
            raise BrowserError(f"{site}: no sign-in form at {address}{login.path}: {error.message[:200]}") from error
        finally:
            await session.close()
        if self._expired(site, address, jar):
            raise BrowserError(f"{site} refused to sign in {account.username} at {address}{login.path}.")
        return jar

    def _merged(self, jars: Mapping[str, Sequence[Cookie]]) -> list[Cookie]:
        """Put sessions into one jar; where two sites of one host use one name, the first site keeps it."""
        merged: dict[tuple[str, str, str], tuple[str, Cookie]] = {}
        for site, jar in jars.items():
            for cookie in jar:
                place = (cookie["name"], cookie["domain"], cookie["path"])
                first = merged.setdefault(place, (site, cookie))[0]
                if first != site:
                    self._tell(
                        f"{first} and {site} both use the cookie {cookie['name']} on {cookie['domain']}, so tasks on "
                        f"both are signed in to {first} only; give the sites different host names"
                    )
        return [cookie for _, cookie in merged.values()]

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            log.warning(line)

    # Resets

    def reset(self, sites: Iterable[str], worker: int = 0) -> None:
        """Put sites into their initial state and forget their sessions; nothing happens without a reset hook.

        Raises:
            BrowserError: the hook failed, or took longer than ``RESET_SECONDS``.
        """
        wanted = [site for site in dict.fromkeys(sites) if site in LOGINS]
        if not self.reset_by or not wanted:
            return
        with self._lock:
            if self.reset_by == "env-ctrl":
                for site in wanted:
                    reset_container(self._control(site, worker))
            else:
                run_command(self.reset_by, {s: self.address(s, worker) for s in self.addresses}, wanted)
            fresh = {self.address(site, worker) for site in wanted}
            self._jars = {key: jar for key, jar in self._jars.items() if key[1] not in fresh}

    def _control(self, site: str, worker: int) -> str:
        default = f"http://{urlsplit(self.address(site, worker)).hostname}:{CONTROL_PORTS[site]}"
        copies = self._environ.get(f"{site.upper()}_ENV_CTRL", default).split(",")
        return _address(f"{site.upper()}_ENV_CTRL", copies[worker if len(copies) > 1 else 0])

    # Helper functions of the graders

    def call(self, call: Call, worker: int = 0) -> str | None:
        """Run a helper that asks the shop's REST interface; None for those that read pages.

        Raises:
            BrowserError: the shop does not answer as it should.
        """
        if not call.name.startswith("shopping_"):
            return None
        return call_helper(call, self.address("shopping", worker), self.accounts["shopping_admin"])
