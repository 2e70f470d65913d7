/** Types of the REST interface and of the live feed's messages, generated from their descriptions. */
import openapiTS, { astToString } from 'openapi-typescript'

interface AsyncDescription {
  readonly components: {
    readonly messages: Readonly<Record<string, { readonly payload: object }>>
    readonly schemas: Readonly<Record<string, object>>
  }
}

const HEADER = '/** Generated from the description of the exchange. */\n'

const generate = async (document: object): Promise<string> =>
  HEADER + astToString(await openapiTS(document as never, { silent: true, immutable: true }))

/** `paths`, `operations` and `components`. */
export const restTypes = (openApi: object): Promise<string> => generate(openApi)

/** `components['schemas']` has each message under its name in the description. */
export const liveTypes = ({ components }: AsyncDescription): Promise<string> => {
  const payloads = Object.entries(components.messages).map(([name, { payload }]) => [name, payload])
  return generate({
    openapi: '3.1.0',
    info: { title: 'live feed', version: '0' },
    paths: {},
    components: { schemas: { ...components.schemas, ...Object.fromEntries(payloads) } },
  })
}
