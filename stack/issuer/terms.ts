/** Terms shared by the local identity provider, the API and programs that sign in. */

/** `aud` of the tokens. */
export const AUDIENCE = 'urn:clearbatch:api'
/** The claim with the wallet's address, as the api expects it by default. */
export const WALLET_CLAIM = 'wallet_address'
/** The public client of programs and of the pages; `client/sign-in.ts` uses both. */
export const CLIENT_ID = 'clearbatch'
/** Client id of the command `clearbatch`, whose redirection has a port of its own. */
export const COMMAND_CLIENT_ID = 'clearbatch-command'
export const PROGRAM_REDIRECT = 'http://127.0.0.1/callback'
