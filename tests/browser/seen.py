"""The page that a browser shows, and the messages of its console."""

from __future__ import annotations

from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webelement import WebElement


def text_of(element: WebElement) -> str:
    """The text, also if it is about to be replaced."""
    try:
        return element.text
    except Exception:
        return ""


def texts(browser: WebDriver, selector: str) -> list[str]:
    """The texts of all elements that match."""
    return [text_of(element) for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def complaints(browser: WebDriver) -> list[str]:
    """Messages of the console since the last call: failures, and what the policy has refused."""
    entries: list[dict[str, str]] = browser.execute(Command.GET_LOG, {"type": "browser"})["value"]
    return [entry["message"] for entry in entries]
