/** A local chain for one test file: `before` starts it, `after` stops it. */
import { type Anvil, type AnvilOptions, startAnvil } from '../../stack/anvil.ts'

/** `url` throws until the `before` hook has run. */
export function useAnvil(options: AnvilOptions = {}): { readonly url: string } {
  let anvil: Anvil | undefined
  before(async () => {
    anvil = await startAnvil(options)
  })
  after(() => anvil?.stop())
  return {
    get url() {
      if (!anvil) throw new Error('the chain runs from before() to after()')
      return anvil.url
    },
  }
}
