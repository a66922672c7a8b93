// Renews the page while it is looked at, and keeps what the reader does in it.
"use strict";
const every = 2000;
const button = document.getElementById("renew");
let running = true;
button.hidden = false;
button.onclick = () => {
	running = !running;
	button.textContent = running ? "Stop" : "Renew";
};
async function renew() {
	if (!running || document.hidden || document.activeElement.matches("input")) return;
	const answer = await fetch(location.href);
	if (!answer.ok) throw new Error(await answer.text());
	const text = new DOMParser().parseFromString(await answer.text(), "text/html");
	const left = [...document.querySelectorAll(".wide")].map((e) => e.scrollLeft);
	document.title = text.title;
	document.querySelector("main").replaceWith(text.querySelector("main"));
	document.querySelector("header time").replaceWith(text.querySelector("header time"));
	document.querySelectorAll(".wide").forEach((e, i) => { e.scrollLeft = left[i] || 0; });
}
async function round() {
	try {
		await renew();
	} catch (e) {
		document.querySelector("header time").textContent = "not renewed: " + e.message;
	}
	setTimeout(round, every);
}
setTimeout(round, every);
