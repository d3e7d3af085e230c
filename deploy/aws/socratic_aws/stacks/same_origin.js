// The API compares a page's origin with the name that it was called by. Behind CloudFront it knows
// that name no longer, so the comparison takes place here.
function handler(event) {
  var request = event.request;
  var origin = request.headers.origin;
  var host = request.headers.host;
  if (origin && host && origin.value === "https://" + host.value) {
    delete request.headers.origin;
  }
  return request;
}
