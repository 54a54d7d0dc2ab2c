// The shop's own script: one object of the SDK, and a question at each of the two forms.
const endpoint = document.currentScript.dataset.api
const at = (id) => document.getElementById(id)

// What goes to the risk service is shown on the page, taken from the request itself.
const send = window.fetch
window.fetch = (address, options) => {
  if (String(address).endsWith('/collect')) at('sent').textContent = JSON.stringify(JSON.parse(options.body), null, 2)
  return send(address, options)
}

const vettance = window.Vettance?.createVettance({
  endpoint,
  consent: true,
  // A demonstration has more time than a shop with customers who wait.
  collectTimeoutMs: 20_000,
  getToken: async () => (await send('/token', { method: 'POST' })).json(),
})
vettance?.start()

const ask = async (form, category, payload) => {
  const shown = at('decision')
  shown.dataset.state = 'asking'
  shown.textContent = 'Asking…'
  // Null when the risk service does not answer: a shop decides by itself then, and goes on.
  const decision = await vettance?.collect({ category, payload })
  shown.dataset.state = decision ? decision.decision : 'none'
  shown.textContent = decision
    ? `${decision.decision} · risk ${Math.round(decision.score * 100)} of 100`
    : 'No answer; the shop goes on.'
  form.reset()
  vettance?.page()
}

at('login').addEventListener('submit', (event) => {
  event.preventDefault()
  void ask(event.target, 'AUTHENTICATION', { eventName: 'user.login' })
})
at('pay').addEventListener('submit', (event) => {
  event.preventDefault()
  void ask(event.target, 'TRANSACTION', { eventName: 'payment.attempt', amount: 20, currency: 'EUR' })
})

const fill = (values, button) => {
  for (const [id, value] of Object.entries(values)) {
    at(id).value = value
    at(id).dispatchEvent(new Event('input', { bubbles: true }))
  }
  at(button).click()
}
at('script-login').addEventListener('click', () =>
  fill({ email: 'script@example.com', password: 'not a real one' }, 'log-in'),
)
at('script-pay').addEventListener('click', () =>
  fill({ name: 'A. Script', card: '4242424242424242' }, 'pay-now'),
)
