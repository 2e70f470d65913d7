/**
 * Secrets of this browser in IndexedDB, encrypted by a WebCrypto key that scripts can use but never read. A copied disk yields nothing;
 * a script that runs in this page could still use the key.
 */

const DATABASE = 'clearbatch'
const STORE = 'secrets'
const WRAPPING = 'wrapping-key'

interface Sealed {
  readonly iv: Uint8Array<ArrayBuffer>
  readonly data: ArrayBuffer
}

const ended = <Value>(request: IDBRequest<Value>): Promise<Value> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('the database of this browser failed'))
  })

let opened: Promise<IDBDatabase> | null = null

function database(): Promise<IDBDatabase> {
  if (opened !== null) return opened
  const request = indexedDB.open(DATABASE, 1)
  request.onupgradeneeded = () => request.result.createObjectStore(STORE)
  opened = ended(request)
  return opened
}

async function read<Value>(key: string): Promise<Value | undefined> {
  const store = (await database()).transaction(STORE).objectStore(STORE)
  return ended(store.get(key) as IDBRequest<Value | undefined>)
}

async function write(key: string, value: unknown): Promise<void> {
  const store = (await database()).transaction(STORE, 'readwrite').objectStore(STORE)
  await ended(store.put(value, key))
}

/** `add` fails if another tab has stored its key meanwhile: both then use that one. */
async function wrappingKey(): Promise<CryptoKey> {
  const known = await read<CryptoKey>(WRAPPING)
  if (known !== undefined) return known
  const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
  const store = (await database()).transaction(STORE, 'readwrite').objectStore(STORE)
  try {
    await ended(store.add(key, WRAPPING))
    return key
  } catch {
    return (await read<CryptoKey>(WRAPPING)) ?? key
  }
}

export async function seal(name: string, value: unknown): Promise<void> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const text = new TextEncoder().encode(JSON.stringify(value))
  const data = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await wrappingKey(), text)
  await write(name, { iv, data } satisfies Sealed)
}

/** Null if nothing is stored under the name, or the browser has lost the wrapping key. */
export async function unseal<Value>(name: string): Promise<Value | null> {
  const sealed = await read<Sealed>(name)
  if (sealed === undefined) return null
  try {
    const options = { name: 'AES-GCM', iv: sealed.iv }
    const text = await crypto.subtle.decrypt(options, await wrappingKey(), sealed.data)
    return JSON.parse(new TextDecoder().decode(text)) as Value
  } catch {
    return null
  }
}

export async function forget(name: string): Promise<void> {
  const store = (await database()).transaction(STORE, 'readwrite').objectStore(STORE)
  await ended(store.delete(name))
}
