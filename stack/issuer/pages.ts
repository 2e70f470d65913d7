/** The pages of the local identity provider: sign-in with a browser's wallet, and the access token that it yields. */
import { CLIENT_ID } from './terms.ts'

export interface Page {
  readonly html: string
  /** Only the page's own style and script may run. */
  readonly policy: string
}

const STYLE = `
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem; color: #111; background: #fff }
button, a.action { font: inherit; padding: .6rem 1.2rem; border: 0; border-radius: .3rem; background: #0b3d91; color: #fff; cursor: pointer }
a.action { display: inline-block; text-decoration: none }
:focus-visible { outline: 3px solid #e8a200; outline-offset: 2px }
pre, output { display: block; white-space: pre-wrap; overflow-wrap: anywhere; background: #f1f1f1; padding: .8rem; min-height: 1.5rem }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #161616 } pre, output { background: #2a2a2a } }
`

function page(title: string, body: string, script: string): Page {
  const nonce = crypto.randomUUID()
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style nonce="${nonce}">${STYLE}</style></head>
<body><main><h1>${title}</h1>
${body}
</main><script nonce="${nonce}">${script}</script></body>
</html>
`
  const policy =
    `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  return { html, policy }
}

/** Asks the wallet of the browser for its address, then for its signature of the text. */
export const signInPage = (): Page =>
  page(
    'Sign in with your wallet',
    `<p>Your wallet will show a text to sign. The signature moves no funds.</p>
<p><select id="wallet" aria-label="Wallet" hidden></select> <button id="sign" type="button">Sign in</button></p>
<h2>Text to sign</h2><pre id="text" tabindex="0" aria-label="Text to sign">requested when you sign in</pre>
<p id="status" role="status" aria-live="polite"></p>`,
    `
const element = (id) => document.getElementById(id)
const say = (text) => { element('status').textContent = text }
async function post(path, body) {
  const response = await fetch(location.pathname + path, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}
const hex = (text) => '0x' + Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, '0')).join('')
const wallets = []
window.addEventListener?.('eip6963:announceProvider', ({ detail }) => {
  if (wallets.some(({ info }) => info.uuid === detail.info.uuid)) return
  const option = document.createElement('option')
  option.textContent = detail.info.name
  element('wallet').append(option)
  element('wallet').hidden = wallets.push(detail) < 2
})
window.dispatchEvent?.(new Event('eip6963:requestProvider'))
async function signIn() {
  const wallet = wallets.length > 0 ? wallets[element('wallet').selectedIndex].provider : window.ethereum
  if (!wallet) return say('This browser has no wallet. Install one, or sign in with a program: see client/README.md.')
  element('sign').disabled = true
  try {
    say('Choose an account in your wallet.')
    const [address] = await wallet.request({ method: 'eth_requestAccounts' })
    const { message } = await post('/message', { address })
    element('text').textContent = message
    say('Confirm the signature in your wallet.')
    const signature = await wallet.request({ method: 'personal_sign', params: [hex(message), address] })
    const { redirect_to } = await post('/signature', { message, signature })
    say('Signed in.')
    location.assign(redirect_to)
  } catch (error) {
    say('Not signed in: ' + error.message)
    element('sign').disabled = false
  }
}
element('sign').addEventListener('click', signIn)
`,
  )

/** Starts an authorization, and exchanges its code for the token that it shows. */
export const homePage = (): Page =>
  page(
    'Clearbatch on this machine',
    `<p>Sign in with the wallet of an account to get an access token for the REST interface. It is valid for one hour.</p>
<p><button id="start" type="button">Sign in</button></p>
<h2 id="token-title">Access token</h2><output id="token" aria-labelledby="token-title"></output>
<p><button id="copy" type="button" disabled>Copy the token</button></p>
<p id="status" role="status" aria-live="polite"></p>`,
    `
const element = (id) => document.getElementById(id)
const say = (text) => { element('status').textContent = text }
const redirect = location.origin + '/signed-in'
const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)))
async function start() {
  const [verifier, state] = [random(), random()]
  sessionStorage.setItem('sign-in', JSON.stringify({ verifier, state }))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))
  location.assign('/auth?' + new URLSearchParams({
    client_id: '${CLIENT_ID}', response_type: 'code', scope: 'openid', redirect_uri: redirect, state, prompt: 'login',
    code_challenge: base64url(digest), code_challenge_method: 'S256',
  }))
}
async function finish(query) {
  const { verifier, state } = JSON.parse(sessionStorage.getItem('sign-in') ?? '{}')
  sessionStorage.removeItem('sign-in')
  history.replaceState(null, '', '/')
  if (query.get('state') !== state || !query.get('code')) return say('Not signed in: ' + (query.get('error') ?? 'start again'))
  const response = await fetch('/token', { method: 'POST', body: new URLSearchParams({
    grant_type: 'authorization_code', client_id: '${CLIENT_ID}', redirect_uri: redirect, code: query.get('code'), code_verifier: verifier,
  }) })
  const answer = await response.json()
  if (!response.ok) return say('Not signed in: ' + answer.error)
  element('token').textContent = answer.access_token
  element('copy').disabled = false
  say('Signed in.')
}
element('start').addEventListener('click', start)
element('copy').addEventListener('click', async () => {
  await navigator.clipboard.writeText(element('token').textContent)
  say('Copied.')
})
if (location.pathname === '/signed-in') finish(new URLSearchParams(location.search))
`,
  )
