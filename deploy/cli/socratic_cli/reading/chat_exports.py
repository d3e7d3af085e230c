"""Reads chats that a chat program exported: ChatGPT, Claude, Open WebUI, LibreChat, chatbot-ui.

Where messages are a tree, the branch that the person saw last counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from socratic_bench.scoring.exchange import Status
from socratic_cli.reading.conversations import answered_in
from socratic_cli.reading.json_stream import RunsOf
from socratic_cli.reading.logged_runs import (
    LoggedRun,
    LoggedTurn,
    instant,
    member,
    text_or_none,
)

Messages = list[dict[str, Any]]


def chats(messages_of: Callable[[Mapping[str, Any]], Messages], model: str) -> RunsOf:
    """Return what reads one chat of an export, given as messages with a role by `messages_of`."""

    def runs_of(place: str, chat: Mapping[str, Any]) -> Iterator[LoggedRun]:
        yield from _run(place, chat, messages_of(chat), model)

    return runs_of


def _run(
    place: str, chat: Mapping[str, Any], messages: Messages, model: str
) -> Iterator[LoggedRun]:
    turns = [
        LoggedTurn(
            before.student,
            said.text,
            said.status or Status.OK,
            model_version=text_or_none(said.message.get("model")),
        )
        for said, before in answered_in(messages)
    ]
    if not turns:
        return
    names = ("conversation_id", "conversationId", "id", "uuid")
    name = next((chat[key] for key in names if isinstance(chat.get(key), str | int)), "")
    title = text_or_none(chat.get("title", chat.get("name")), 60)
    dates = ("create_time", "created_at", "createdAt")
    at = next((at for key in dates if (at := instant(chat.get(key))) is not None), None)
    sample = f"{title} ({str(name)[:8]})" if title and name else title or str(name)
    yield LoggedRun(place, model, sample, turns, at=at)


def chatgpt(chat: Mapping[str, Any]) -> Messages:
    """Return the messages of a chat of ChatGPT, from its current node up."""
    mapping = chat.get("mapping")
    if not isinstance(mapping, Mapping):
        return []
    messages: Messages = []
    for node in _branch(mapping, chat.get("current_node"), "parent"):
        message = member(node, "message")
        role = member(message, "author", "role")
        kind = member(message, "content", "content_type")
        shown = member(message, "recipient") in (None, "all")
        if (
            role not in ("user", "assistant")
            or kind not in ("text", "multimodal_text")
            or not shown
        ):
            continue
        parts = member(message, "content", "parts")
        text = "".join(each for each in parts or () if isinstance(each, str))
        if text.strip():
            status = member(message, "status")
            model = member(message, "metadata", "model_slug")
            end = {"status": status} if status == "in_progress" else {}
            messages.append({"role": role, "content": text, "model": model, **end})
    return messages


def _branch(nodes: Mapping[str, Any], last: object, parent: str) -> list[Any]:
    """Return the nodes from the first to `last`. A circle of parents ends where it closes."""
    branch = dict[str, Any]()
    while isinstance(last, str) and last in nodes and last not in branch:
        branch[last] = nodes[last]
        last = member(nodes[last], parent)
    return [*branch.values()][::-1]


def claude(chat: Mapping[str, Any]) -> Messages:
    """Return the messages of a chat of Claude: the branch that ends with the last message."""
    said = [each for each in chat.get("chat_messages") or () if isinstance(each, Mapping)]
    named = {each["uuid"]: each for each in said if isinstance(each.get("uuid"), str)}
    if len(named) == len(said) and any("parent_message_uuid" in each for each in said):
        said = _branch(named, said[-1]["uuid"], "parent_message_uuid")
    messages: Messages = []
    for each in said:
        parts = each.get("content")
        texts = [
            part["text"]
            for part in (parts if isinstance(parts, list) else ())
            if member(part, "type") == "text" and isinstance(member(part, "text"), str)
        ]
        text = "\n\n".join(texts) if texts else each.get("text")
        role = "user" if each.get("sender") == "human" else "assistant"
        if isinstance(text, str) and text.strip():
            messages.append({"role": role, "content": text})
    return messages


def open_webui(chat: Mapping[str, Any]) -> Messages:
    """Return the messages of a chat of Open WebUI, from its current one up."""
    history = member(chat, "chat", "history")
    nodes = member(history, "messages")
    if not isinstance(nodes, Mapping):
        return _plain(member(chat, "chat", "messages"))
    return _plain(_branch(nodes, member(history, "currentId"), "parentId"))


def _plain(messages: object) -> Messages:
    return [
        {"role": each["role"], "content": each["content"], "model": each.get("model")}
        for each in (messages if isinstance(messages, list) else ())
        if isinstance(each, Mapping)
        and each.get("role") in ("user", "assistant", "system")
        and isinstance(each.get("content"), str)
    ]


def librechat(chat: Mapping[str, Any]) -> Messages:
    """Return the messages of a chat of LibreChat; of several answers, the last one."""
    tree = chat.get("messagesTree")
    said: list[Any] = []
    if not isinstance(tree, list):
        flat = chat.get("messages")
        said = flat if isinstance(flat, list) else []
    while isinstance(tree, list) and tree:
        said.append(tree[-1])
        tree = member(tree[-1], "children")
    messages: Messages = []
    for each in said:
        parts = member(each, "content")
        texts = [
            part["text"]
            for part in (parts if isinstance(parts, list) else ())
            if member(part, "type") == "text" and isinstance(member(part, "text"), str)
        ]
        text = "".join(texts) or member(each, "text")
        role = "user" if member(each, "isCreatedByUser") is True else "assistant"
        if isinstance(text, str) and text.strip():
            messages.append({"role": role, "content": text, "model": member(each, "model")})
    return messages


def chatbot_ui(place: str, export: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield the chats of an export of chatbot-ui."""
    for number, chat in enumerate(export["history"], start=1):
        if isinstance(chat, Mapping):
            messages = _plain(chat.get("messages"))
            yield from _run(f"{place} chat {number}", chat, messages, "chatbot-ui")
