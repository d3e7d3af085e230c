// Where the pages find the API. This file is not bundled: whoever lays the pages elsewhere changes it.

/** The address before the paths of the API, such as "https://api.example.org"; empty on the API's own name. */
export const api = "";
