"""The forum's families of tasks: wordings, instances and scripted solutions."""

from __future__ import annotations

from functools import partial

from webrl_lite.envs.embedded.families import Family
from webrl_lite.envs.embedded.reddit import changes, instances, oracles

_ask = partial(Family, sites=("reddit",), kind="retrieve")
_go = partial(Family, sites=("reddit",), kind="navigate")
_change = partial(Family, sites=("reddit",), kind="change")

QUESTIONS = (
    _ask(
        "reddit.lead_author",
        wordings=(
            "Who wrote the {order} submission in the forum {forum}?",
            "Tell me the user name of the author of the {order} post in {forum}.",
            "In the forum {forum}, which user posted the {order} submission?",
        ),
        instances=instances.lead_fact("author"),
        oracle=oracles.lead_author,
        wrong="silent_nobody",
    ),
    _ask(
        "reddit.lead_score",
        wordings=(
            "How many points does the {order} submission in the forum {forum} have?",
            "What is the score of the {order} post in {forum}?",
            "Tell me the points of the {order} submission in the forum {forum}.",
        ),
        instances=instances.lead_fact("score"),
        oracle=oracles.lead_score,
    ),
    _ask(
        "reddit.lead_comments",
        wordings=(
            "How many comments does the {order} submission in the forum {forum} have?",
            "Tell me the number of comments on the {order} post in {forum}.",
            "In the forum {forum}, how many comments are there on the {order} submission?",
        ),
        instances=instances.lead_fact("comments"),
        oracle=oracles.lead_comments,
    ),
    _ask(
        "reddit.post_author",
        wordings=(
            'Who posted "{title}" in the forum {forum}?',
            'Tell me the author of the submission "{title}" in {forum}.',
            'Which user wrote "{title}" in the forum {forum}?',
        ),
        instances=instances.post_author,
        oracle=oracles.post_author,
        wrong="silent_nobody",
    ),
    _ask(
        "reddit.comment_score",
        wordings=(
            'How many points does the comment by {user} on "{title}" have?',
            'What is the score of the comment that {user} wrote on the submission "{title}"?',
            'In the thread "{title}", tell me the points of the comment by {user}.',
        ),
        instances=instances.comment_score,
        oracle=oracles.comment_score,
    ),
    _ask(
        "reddit.negative_comments",
        wordings=(
            'How many comments on "{title}" have fewer than 0 points?',
            'Count the comments on the submission "{title}" with a negative score.',
            'In the thread "{title}", how many comments have a score below zero?',
        ),
        instances=instances.negative_comments,
        oracle=oracles.negative_comments,
        held_out=True,
    ),
    _ask(
        "reddit.user_likes",
        wordings=(
            "What does the user {user} like, according to the biography?",
            "Which two things does {user} like? It stands in the biography.",
            "Read the biography of {user} and tell me what this user likes.",
        ),
        instances=instances.user_likes,
        oracle=oracles.user_likes,
        wrong="sour milk and hail",
    ),
    _ask(
        "reddit.newest_of_user",
        wordings=(
            "What is the title of the newest submission by {user}?",
            "Tell me the title of the latest post of the user {user}.",
            "Which submission did {user} post last? Give its title.",
        ),
        instances=instances.newest_of_user,
        oracle=oracles.newest_of_user,
        wrong="A title that nobody wrote",
    ),
    _ask(
        "reddit.forum_subscribers",
        wordings=(
            "How many subscribers does the forum {forum} have?",
            "Tell me the number of subscribers of {forum}.",
            "What is the number of people who subscribe to the forum {forum}?",
        ),
        instances=instances.forum_subscribers,
        oracle=oracles.forum_subscribers,
    ),
    _ask(
        "reddit.forum_rank",
        wordings=(
            "Which forum is number {number} in the list of forums by subscribers?",
            "Sort the forums by subscribers. What is the name of forum number {number}?",
            "Tell me the name of the forum at place {number} by number of subscribers.",
        ),
        instances=instances.forum_rank,
        oracle=oracles.forum_rank,
        wrong="nothing_at_all",
    ),
    _ask(
        "reddit.handbook_fact",
        wordings=(
            "What is {what}, according to the handbook of the forum {forum}?",
            "Read the handbook of {forum} and tell me {what}.",
            "Open the handbook of the forum {forum}. What is {what}?",
        ),
        instances=instances.handbook_fact,
        oracle=oracles.handbook_fact,
        held_out=True,
    ),
    _ask(
        "reddit.user_email",
        wordings=(
            "What is the e-mail address of the user {user}?",
            "Tell me the e-mail address of {user}.",
            "Find the e-mail address that {user} gives in the profile.",
        ),
        instances=instances.user_email,
        oracle=oracles.user_email,
        wrong="someone@mail.example",
    ),
)

PAGES = (
    _go(
        "reddit.forum_sorted",
        wordings=(
            "Show the forum {forum}, sorted by {sort}.",
            "Open the forum {forum} and sort its submissions by {sort}.",
            "Go to {forum} and choose the sort {sort}.",
        ),
        instances=instances.forum_sorted,
        oracle=oracles.forum_sorted,
    ),
    _go(
        "reddit.forum_span",
        wordings=(
            "Show the forum {forum}, sorted by {sort}, for the time span {span}.",
            "Open {forum}, sort by {sort} and choose {span}.",
            "In the forum {forum}, list the submissions by {sort} with the time {span}.",
        ),
        instances=instances.forum_span,
        oracle=oracles.forum_span,
    ),
    _go(
        "reddit.goto_post",
        wordings=(
            'Open the submission "{title}" in the forum {forum}.',
            'Go to the page of "{title}" in {forum}.',
            'Show me the thread "{title}" of the forum {forum}.',
        ),
        instances=instances.goto_post,
        oracle=oracles.goto_post,
    ),
    _go(
        "reddit.user_comments",
        wordings=(
            "Show the comments of the user {user}.",
            "Open the list of comments by {user}.",
            "Go to the profile of {user} and show the comments.",
        ),
        instances=instances.user_comments,
        oracle=oracles.user_comments,
    ),
)

CHANGES = (
    _change(
        "reddit.vote_lead",
        wordings=(
            "{vote} the {order} submission in the forum {forum}.",
            "Go to {forum}, find the {order} submission and {vote} it.",
            "In the forum {forum}: {vote} the {order} post.",
        ),
        instances=changes.vote_lead,
        oracle=oracles.vote_lead,
    ),
    _change(
        "reddit.vote_named",
        wordings=(
            '{vote} the submission "{title}" in the forum {forum}.',
            'Find "{title}" in {forum} and {vote} it.',
            'In the forum {forum}: {vote} the post "{title}".',
        ),
        instances=changes.vote_named,
        oracle=oracles.vote_named,
    ),
    _change(
        "reddit.withdraw_vote",
        wordings=(
            'Take back my vote on the submission "{title}".',
            'I voted on "{title}". Retract this vote.',
            'Remove my own vote from the post "{title}".',
        ),
        instances=changes.withdraw_vote,
        oracle=oracles.withdraw_vote,
    ),
    _change(
        "reddit.comment_on",
        wordings=(
            'Comment on the submission "{title}" in the forum {forum}: "{text}"',
            'Post the comment "{text}" on "{title}" in {forum}.',
            'Write "{text}" as a comment on the post "{title}" in the forum {forum}.',
        ),
        instances=changes.comment_on,
        oracle=oracles.comment_on,
    ),
    _change(
        "reddit.reply_to",
        wordings=(
            'Reply to the comment by {user} on "{title}": "{text}"',
            'Answer the comment of {user} on the submission "{title}" with "{text}"',
            'In the thread "{title}", reply "{text}" to {user}.',
        ),
        instances=changes.reply_to,
        oracle=oracles.reply_to,
    ),
    _change(
        "reddit.post_text",
        wordings=(
            'Post in the forum {forum} with the title "{title}" and the body "{body}"',
            'Create a submission in {forum}. Title: "{title}" Body: "{body}"',
            'Write a post named "{title}" in the forum {forum} that says "{body}"',
        ),
        instances=changes.post_text,
        oracle=oracles.post_text,
    ),
    _change(
        "reddit.repost",
        wordings=(
            'Post the link of "{title}" in the forum {forum} too, with the same title and no body.',
            'Repost the link of the submission "{title}" in {forum}. Keep the title.',
            'Share the URL of the post "{title}" in the forum {forum} under the same title.',
        ),
        instances=changes.repost,
        oracle=oracles.repost,
        held_out=True,
    ),
    _change(
        "reddit.edit_post",
        wordings=(
            'Replace the body of my submission "{title}" by "{body}"',
            'Edit my post "{title}" so that its body is "{body}"',
            'Change the text of my submission "{title}" to "{body}"',
        ),
        instances=changes.edit_post,
        oracle=oracles.edit_post,
    ),
    _change(
        "reddit.delete_post",
        wordings=(
            'Delete my submission "{title}".',
            'Remove my post "{title}" from the site.',
            'I do not want my submission "{title}" any more. Delete it.',
        ),
        instances=changes.delete_post,
        oracle=oracles.delete_post,
    ),
    _change(
        "reddit.subscribe",
        wordings=(
            "{verb} the forum {forum}.",
            "{verb} {forum}.",
            "Find the forum {forum} for me. {verb} it.",
        ),
        instances=changes.subscribe,
        oracle=oracles.subscribe,
    ),
    _change(
        "reddit.change_bio",
        wordings=(
            'Change my biography to "{bio}"',
            'Set the biography in my profile to "{bio}"',
            'Write "{bio}" as my new biography.',
        ),
        instances=changes.change_bio,
        oracle=oracles.change_bio,
    ),
    _change(
        "reddit.create_forum",
        wordings=(
            'Create a forum named {name} with the title "{title}", the description "{description}",'
            ' the sidebar "{sidebar}" and the tags "{tags}"',
            'Open a new forum. Name: {name} Title: "{title}" Description: "{description}"'
            ' Sidebar: "{sidebar}" Tags: "{tags}"',
            'Make the forum {name}. Its title is "{title}", its description "{description}",'
            ' its sidebar "{sidebar}", its tags "{tags}"',
        ),
        instances=changes.create_forum,
        oracle=oracles.create_forum,
    ),
    _change(
        "reddit.send_message",
        wordings=(
            'Send a message to the user {user} with the subject "{subject}" and the text "{text}"',
            'Write to {user}. Subject: "{subject}" Message: "{text}"',
            'Send {user} a message named "{subject}" that says "{text}"',
        ),
        instances=changes.send_message,
        oracle=oracles.send_message,
    ),
    _change(
        "reddit.answer_message",
        wordings=(
            'Answer the message of {user} in my inbox with "{text}"',
            'Reply "{text}" to the message that {user} sent me.',
            'Open the message from {user} and answer "{text}"',
        ),
        instances=changes.answer_message,
        oracle=oracles.answer_message,
        held_out=True,
    ),
    _change(
        "reddit.sign_in_again",
        wordings=(
            'Sign in as {username} with the password "{password}" and subscribe to the forum {forum}.',
            'My session has expired. Sign in again as {username} with "{password}" and subscribe to {forum}.',
            'Subscribe to the forum {forum}. You have to sign in first, as {username} with "{password}".',
        ),
        instances=changes.sign_in_again,
        oracle=oracles.sign_in_again,
    ),
)

FAMILIES = (*QUESTIONS, *PAGES, *CHANGES)
