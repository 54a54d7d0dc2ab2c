// Shows the service's own OpenAPI document. No validator badge and no remembered key: the page must
// work without a network, and a key must not outlive the tab.
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
