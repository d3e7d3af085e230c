// Where the pages find the API. This file is not bundled: whoever lays the pages elsewhere changes it.

/** The address before the paths of the API, such as "https://api.example.org"; here the folder of these pages. */
export const api = new URL("..", import.meta.url).pathname.replace(/\/$/, "");
