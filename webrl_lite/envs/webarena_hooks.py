"""What reaches into a hosted site beside its pages: plain requests, resets, and the graders' helper functions.

*Resets.* A command of the user, or ``env-ctrl``: ``POST /reset`` of the control port of WebArena-Verified's images,
then ``GET /status`` until it says that the site is ready.

*Helpers.* Those of WebArena's and VisualAgentBench's that ask the shop's REST interface, with the administrator's
account, so that they tell the truth whoever is signed in.

Source: ``evaluation_harness/helper_functions.py`` of web-arena-x/webarena (``libwebarena`` 0.0.5), the HTTP client of
``env-ctrl`` in ServiceNow/webarena-verified 1.2.3. Differs from both: a site that answers wrongly is an environment
fault, and no exception or empty text in a grade.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from webrl_lite.browser import BrowserError
from webrl_lite.chromium import end_tree
from webrl_lite.evaluators import Call
from webrl_lite.trajectory import JSON

HTTP_SECONDS = 30.0
RESET_SECONDS = 1800.0
"""A full reset takes minutes; GitLab alone boots for five."""
POLL_SECONDS = 1.0

Cookie = dict[str, str]
"""A cookie as Playwright takes it."""


@dataclass(frozen=True)
class Account:
    """Who signs in."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"Account({self.username!r})"


# --- requests ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What a site answered."""

    status: int
    url: str
    """After redirects."""
    text: str


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # as the browser, which uses no proxy either


def ask(
    url: str,
    *,
    method: str = "GET",
    body: JSON = None,
    headers: Mapping[str, str] | None = None,
    cookies: Sequence[Cookie] = (),
    timeout: float = HTTP_SECONDS,
) -> Answer:
    """Make one request; redirects are followed.

    Args:
        url: absolute address.
        method: of the request.
        body: sent as JSON.
        headers: further ones.
        cookies: a jar; those for the host are sent.
        timeout: seconds.

    Raises:
        BrowserError: nobody answers.
    """
    request = urllib.request.Request(url, method=method, headers={"User-Agent": "webrl_lite", **(headers or {})})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    host = urlsplit(url).hostname or ""
    sent = [c for c in cookies if host == c["domain"].lstrip(".") or host.endswith("." + c["domain"].lstrip("."))]
    if sent:
        request.add_header("Cookie", "; ".join(f"{c['name']}={c['value']}" for c in sent))
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            return Answer(response.status, response.url, response.read(2_000_000).decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.url or url, error.read(200_000).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise BrowserError(f"{url.partition('?')[0]} does not answer: {reason or type(error).__name__}") from error


# --- resets ------------------------------------------------------------------------------------------------


def run_command(command: str, addresses: Mapping[str, str], sites: Sequence[str]) -> None:
    """Run a user's reset script.

    Args:
        command: with its arguments, as in a shell; no shell runs it.
        addresses: of all sites, which it finds in ``SHOPPING`` and so on.
        sites: those to be reset, which it finds in ``WEBRL_LITE_SITES``, separated by spaces.

    Raises:
        BrowserError: it cannot be run, fails, or takes longer than ``RESET_SECONDS``.
    """
    variables = {site.upper(): address for site, address in addresses.items()}
    try:
        process = subprocess.Popen(
            shlex.split(command),
            env={**os.environ, **variables, "WEBRL_LITE_SITES": " ".join(sites)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except (OSError, ValueError) as error:
        raise BrowserError(f"`{command}` could not be run: {error}") from error
    try:
        output, _ = process.communicate(timeout=RESET_SECONDS)
    except subprocess.TimeoutExpired:
        end_tree(process.pid)
        process.communicate()
        raise BrowserError(f"`{command}` took longer than {RESET_SECONDS:g} s.") from None
    if process.returncode:
        last = (output.strip().splitlines() or ["no output"])[-1]
        raise BrowserError(f"`{command}` ended with status {process.returncode}: {last[:200]}")


def reset_container(control: str) -> None:
    """Reset one site through ``env-ctrl`` and wait until it is ready.

    Args:
        control: address of the control port.

    Raises:
        BrowserError: it refuses, has no reset, or is not ready after ``RESET_SECONDS``.
    """
    _said(ask(control + "/reset", method="POST", timeout=RESET_SECONDS))
    end = time.monotonic() + RESET_SECONDS
    while True:
        try:
            return _said(ask(control + "/status"))
        except BrowserError:  # the container starts again
            if time.monotonic() > end:
                raise
        time.sleep(POLL_SECONDS)


def _said(answer: Answer) -> None:
    """Accept what ``env-ctrl`` says, ``{"success": true, ...}``, or raise."""
    if answer.status == 404:
        raise BrowserError(f"{answer.url} does not exist: this image has no reset of its own; give a command instead.")
    try:
        said = json.loads(answer.text)
        fine, message = said["success"], said.get("message", "")
    except (json.JSONDecodeError, LookupError, TypeError, AttributeError):
        fine, message = False, answer.text
    if answer.status >= 400 or not fine:
        raise BrowserError(f"{answer.url} failed with status {answer.status}: {str(message)[:200]}")


# --- helpers -----------------------------------------------------------------------------------------------


def call_helper(call: Call, shop: str, account: Account) -> str | None:
    """Run a helper that asks the shop's REST interface; None for those that read pages.

    Args:
        call: name and arguments.
        shop: the storefront's address.
        account: the administrator's.

    Raises:
        BrowserError: the shop does not answer as it should.
    """
    if call.name == "shopping_get_latest_order_url":
        newest = {
            "searchCriteria[sortOrders][0][field]": "created_at",
            "searchCriteria[sortOrders][0][direction]": "DESC",
            "searchCriteria[pageSize]": "1",
        }
        order = _item(_rest(f"orders?{urlencode(newest)}", shop, account), "items", 0)
        # differs from release: it takes increment_id, which is the same number until an order is abandoned
        return f"{shop}/sales/order/view/order_id/{_item(order, 'entity_id')}/"
    if call.name == "shopping_get_sku_product_page_url":
        product = _rest(f"products/{quote(str(call.args[0]), safe='')}", shop, account)
        keys = [a["value"] for a in _item(product, "custom_attributes") if a["attribute_code"] == "url_key"]
        return f"{shop}/{keys[0]}.html" if keys else ""
    steps = _REVIEWS.get(call.name)
    if steps is None:
        return None
    reviews = _rest(f"products/{quote(str(call.args[0]), safe='')}/reviews", shop, account)
    return str(_item(reviews, -1, *steps)) if reviews else ""


def _rest(path: str, shop: str, account: Account) -> JSON:
    name = {"username": account.username, "password": account.password}
    token = _json(ask(f"{shop}/rest/default/V1/integration/admin/token", method="POST", body=name))
    return _json(ask(f"{shop}/rest/V1/{path}", headers={"Authorization": f"Bearer {token}"}))


_REVIEWS: dict[str, tuple[str | int, ...]] = {
    "shopping_get_sku_latest_review_author": ("nickname",),
    "shopping_get_sku_latest_review_rating": ("ratings", 0, "percent"),
    "shopping_get_sku_latest_review_text": ("detail",),
    "shopping_get_sku_latest_review_title": ("title",),
}
"""Where in a review each helper looks."""


def _json(answer: Answer) -> JSON:
    try:
        value = json.loads(answer.text)
    except json.JSONDecodeError:
        value = None
    if answer.status != 200 or value is None:
        raise BrowserError(f"{answer.url.split('?')[0]} answered with status {answer.status}: {answer.text[:100]!r}")
    return value


def _item(value: JSON, *steps: str | int) -> JSON:
    try:
        for step in steps:
            value = value[step]
    except (LookupError, TypeError):
        raise BrowserError(f"the shop's answer has no {'.'.join(map(str, steps))}: {str(value)[:100]}") from None
    return value
