/** The script that starts the browser SDK in a page: the same file as that of the Python client. */
export const START_SCRIPT = `// Starts the browser SDK of Vettance with what its script tag says. A page works the same without it.
(() => {
  const said = document.currentScript.dataset
  const create = window.Vettance && window.Vettance.createVettance
  if (!create) return
  const asked = () => new Promise((resolve) => addEventListener('vettance-consent', () => resolve(true), { once: true }))
  const vettance = create({
    endpoint: said.endpoint,
    consent: said.consent === 'given' || asked,
    getToken: async () => {
      const answer = await fetch(said.token, { method: 'POST', credentials: 'same-origin' })
      if (!answer.ok) throw new Error('no token: ' + answer.status)
      return answer.json()
    },
  })
  window.vettance = vettance
  vettance.start()
  // What was measured arrives before the form does, or the form goes half a second later all the same.
  const flushed = new WeakSet()
  document.addEventListener('submit', (event) => {
    const form = event.target
    if (event.defaultPrevented || !form.hasAttribute('data-vettance') || flushed.delete(form)) return
    event.preventDefault()
    const submitter = event.submitter
    const late = new Promise((resolve) => setTimeout(resolve, 500))
    Promise.race([vettance.flush(), late]).catch(() => undefined).then(() => {
      flushed.add(form)
      form.requestSubmit(submitter || undefined)
    })
  })
})()
`;
