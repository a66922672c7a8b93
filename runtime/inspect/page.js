// Renews the page while it is looked at, and keeps what the reader does in it.
"use strict";
const every = 2000, longest = 10000;
const button = document.getElementById("renew");
let running = true;
button.hidden = false;
button.onclick = () => {
	running = !running;
	button.textContent = running ? "Stop" : "Renew";
};
// get asks for the page. A program that is stopped takes the question, and says nothing.
async function get() {
	const late = new AbortController();
	const timer = setTimeout(() => late.abort(new Error("nothing has answered for " + longest / 1000 + " s")), longest);
	const answer = await fetch(location.href, { signal: late.signal });
	clearTimeout(timer);
	return answer;
}
async function renew() {
	if (!running || document.hidden || document.activeElement.matches("input")) return;
	const answer = await get();
	if (!answer.ok) throw new Error(await answer.text());
	const text = new DOMParser().parseFromString(await answer.text(), "text/html");
	if (!text.getElementById("renew")) throw new Error("what answers is no such page");
	const parts = (page) => page.querySelector("style").textContent + page.querySelector("script").textContent;
	if (parts(text) !== parts(document)) return location.reload(); // the program is one of another version now
	const left = [...document.querySelectorAll(".wide")].map((e) => e.scrollLeft);
	document.title = text.title;
	for (const part of ["main", "h1", "#who"]) document.querySelector(part).replaceWith(text.querySelector(part));
	document.querySelectorAll(".wide").forEach((e, i) => { e.scrollLeft = left[i] || 0; });
}
// old says that the page is not of now: it never says that all is well then.
function old(why) {
	const section = document.querySelector("main section");
	let line = document.getElementById("old");
	if (!line) {
		line = document.createElement("p");
		line.id = "old";
		section.prepend(line);
		section.querySelectorAll(".fine").forEach((e) => e.remove());
		document.title = "not renewed · " + document.title;
	}
	line.textContent = "This page is of " + document.querySelector("header time").textContent + ", and was not renewed: " + why + ". Look whether the program runs, and can be reached.";
}
async function round() {
	try {
		await renew();
	} catch (e) {
		old(e.message);
	}
	setTimeout(round, every);
}
setTimeout(round, every);
