// The steps of a run that a server makes. recorded.js has the same functions for a page in a file.
import { get, post } from "/static/lib/api.js";

export const load = () => get("/state");
export const command = (name, argument) => post("/command", { command: name, argument });
