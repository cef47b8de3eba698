"""Families of tasks on the shop's admin: their wordings.

``questions`` and ``changes`` fill them in, ``oracles`` solves them; a family's functions bear its name.
"""

from __future__ import annotations

from webrl_lite.envs.embedded.families import Family
from webrl_lite.envs.embedded.shopping_admin import changes, oracles, questions

RETRIEVE: dict[str, tuple[str, ...]] = {
    "order_total": (
        "What is the grand total of order {number}?",
        "Tell me the total amount of order {number}.",
        "How much does the customer pay in all for order {number}?",
    ),
    "order_customer": (
        "Which customer placed order {number}?",
        "Tell me the name of the customer of order {number}.",
        "Who placed order {number}?",
    ),
    "invoice_total": (
        "What is the total of invoice {number}?",
        "Tell me the amount of invoice {number}.",
        "How much was billed with invoice {number}?",
    ),
    "tracking_number": (
        "What is the tracking number of the shipment of order {number}?",
        "Order {number} has been shipped. Tell me its tracking number.",
        "Find the tracking number for order {number}.",
    ),
    "customer_by_phone": (
        "Which customer has the phone number {phone}?",
        "Somebody called from {phone}. Tell me the name of this customer.",
        "Find the name of the customer with the phone number {phone}.",
    ),
    "customer_orders": (
        "How many orders has the customer {customer} placed?",
        "Tell me the number of orders of {customer}.",
        "What is the number of orders on the account of {customer}?",
    ),
    "pending_reviews": (
        "How many pending reviews are there for products with {kind} in their name?",
        "Count the pending reviews of {kind} products.",
        "Tell me the number of pending reviews of products named {kind}.",
    ),
    "stock_by_sku": (
        "What is the stock of the product with the SKU {sku}?",
        "How many pieces of SKU {sku} are in stock?",
        "Tell me the stock of {sku}.",
    ),
    "term_uses": (
        "How many uses does the search term '{term}' have?",
        "How often was '{term}' searched for? Give the number of uses.",
        "Tell me the number of uses of the search term '{term}'.",
    ),
    "signed_out_town": (
        "Sign in as {username} with the password {password} and tell me the town that order {number} is shipped to.",
        "Which town is order {number} shipped to? The account is {username}, the password {password}.",
        "To which town does order {number} go? Sign in with {username} and {password}.",
    ),
    "bestseller": (
        "Which product sold best from {start} to {end}? Use the bestsellers report with the period {period}.",
        "Name the product with the highest quantity sold between {start} and {end} (bestsellers report, {period}).",
        "Show the bestsellers report by {period} from {start} to {end} and tell me the best-selling product.",
    ),
    "sales_total": (
        "What is the sales total from {start} to {end}? Use the sales report with the period {period}.",
        "Tell me the sales total between {start} and {end} (sales report, {period}).",
        "Show the sales report by {period} from {start} to {end} and tell me the sales total.",
    ),
    "top_customer": (
        "Which customer placed the {rank} orders from {start} to {end}? Use the order count report by {period}.",
        "Name the customer with the {rank} orders between {start} and {end} (order count report, {period}).",
        "Show the order count report by {period} from {start} to {end}. Who placed the {rank} orders?",
    ),
}

NAVIGATE: dict[str, tuple[str, ...]] = {
    "orders_filter": (
        "Use the filters to show only the {status} orders of the customer {customer}.",
        "Filter the orders by customer {customer} and status {status}.",
        "Open the list of orders, filtered to customer {customer} with status {status}.",
    ),
    "open_customer": (
        "Open the page of the customer with the email {email}.",
        "Go to the account of the customer whose email is {email}.",
        "Show me the customer page for {email}.",
    ),
    "category_sorted": (
        "Show the products of the category {category} sorted by {column}, {direction}.",
        "List the {category} products by {column}, {direction}.",
        "Open the product list of category {category} and sort it by {column}, {direction}.",
    ),
}

CHANGE: dict[str, tuple[str, ...]] = {
    "review_status": (
        "Set the pending review of {product} by {nickname} to {status}.",
        "Change the status of the pending review that {nickname} wrote about {product} to {status}.",
        "{nickname} wrote a review of {product} that is pending. Set its status to {status}.",
    ),
    "product_disable": (
        "Disable the product {product}.",
        "Take {product} out of the shop by disabling it.",
        "The product {product} must no longer be enabled. Change that.",
    ),
    "product_price": (
        "Set the price of {product} to {price}.",
        "Change the price of the product {product} to {price}.",
        "{product} now costs {price}. Update its price.",
    ),
    "product_stock": (
        "Set the quantity of {product} to {stock}.",
        "We counted {stock} pieces of {product}. Update its quantity.",
        "Change the stock of the product {product} to {stock}.",
    ),
    "order_cancel": (
        "Cancel order {number}.",
        "The customer no longer wants order {number}. Cancel it.",
        "Please cancel the order with the number {number}.",
    ),
    "order_comment": (
        "Add the comment '{comment}' to order {number} {notice}.",
        "Write the comment '{comment}' on order {number} {notice}.",
        "Comment on order {number} {notice}. The comment is '{comment}'",
    ),
    "order_ship": (
        "Ship order {number} with {carrier}, tracking number {tracking}.",
        "Create a shipment for order {number}. The carrier is {carrier} and the tracking number {tracking}.",
        "Order {number} leaves with {carrier}. Ship it with the tracking number {tracking}.",
    ),
    "order_address": (
        "Change the shipping address of order {number} to street {street}, town {town}, ZIP code {zip}.",
        "Order {number} must go to {street}, {town} {zip}. Edit its shipping address.",
        "Set the shipping address of order {number}: street {street}, town {town}, ZIP code {zip}.",
    ),
    "page_title": (
        "Change the title of the page '{title}' to '{new_title}'.",
        "Rename the content page '{title}' to '{new_title}'.",
        "Set the page title of '{title}' to '{new_title}'.",
    ),
    "customer_group": (
        "Move the customer {customer} to the group {group}.",
        "Change the group of {customer} to {group}.",
        "Set the customer group of {customer} to {group}.",
    ),
    "rule_create": (
        "Create an active price rule '{rule}': {percent} percent off, coupon {coupon}, from {start} to {end}.",
        "Add the price rule '{rule}' with {percent} percent off, the coupon {coupon}, starting {start}, ending {end}.",
        "Make a new active rule named '{rule}' that gives {percent} percent off with {coupon} from {start} to {end}.",
    ),
    "mass_products": (
        "Disable the two products {first} and {second}.",
        "Use the mass action to disable {first} and {second}.",
        "Take {first} and {second} out of the shop: disable both.",
    ),
    "mass_orders": (
        "Put the orders {first} and {second} of {customer} on hold.",
        "Use the mass action to hold the orders {first} and {second} of the customer {customer}.",
        "{customer} asks us to wait. Hold both orders {first} and {second}.",
    ),
}

HELD_OUT = ("invoice_total", "top_customer", "rule_create", "mass_orders")

WRONG = {
    "order_customer": "Silas Lindqvist",
    "customer_by_phone": "Silas Lindqvist",
    "top_customer": "Silas Lindqvist",
    "tracking_number": "TR000001",
    "signed_out_town": "Corner Town",
    "bestseller": "Corner Kettle",
    "order_total": "$1.00",
    "invoice_total": "$1.00",
    "sales_total": "$1.00",
}
"""Answers of the right form that no task has."""

FAMILIES: list[Family] = [
    Family(
        name=f"shopping_admin.{name}",
        sites=("shopping_admin",),
        kind=kind,
        wordings=wordings,
        instances=getattr(module, name),
        oracle=getattr(oracles, name),
        held_out=name in HELD_OUT,
        wrong=WRONG.get(name, "9999"),
    )
    for kind, families, module in (
        ("retrieve", RETRIEVE, questions),
        ("navigate", NAVIGATE, questions),
        ("change", CHANGE, changes),
    )
    for name, wordings in families.items()
]
