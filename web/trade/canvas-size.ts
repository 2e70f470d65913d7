/**
 * Sizes canvases to the pixels of the screen. `vite.config.ts` puts this module in place of fancy-canvas, which lightweight-charts
 * imports: the package takes 2 KB more.
 */

interface Size {
  readonly width: number
  readonly height: number
}

type Listener = (before: Size | null, after: Size | null) => void

export const size = ({ width, height }: Size): Size => ({ width, height })
export const equalSizes = (a: Size, b: Size): boolean => a.width === b.width && a.height === b.height

/** Pixels between the two rounded edges, so that neighbouring boxes leave no gap. */
const pixels = (start: number, length: number, ratio: number): number =>
  Math.round((start + length) * ratio) - Math.round(start * ratio)

class CanvasBinding {
  suggestedBitmapSize: Size | null = null
  canvasElementClientSize: Size
  readonly canvasElement: HTMLCanvasElement
  readonly #transform: (bitmap: Size, client: Size) => Size
  readonly #listeners = new Set<Listener>()
  /** Receives the exact size. A browser that does not report it keeps the predicted size. */
  readonly #observer = new ResizeObserver(([entry]) => {
    const [exact] = entry?.devicePixelContentBoxSize ?? []
    if (exact !== undefined) this.#suggest({ width: exact.inlineSize, height: exact.blockSize })
  })
  #query: MediaQueryList | null = null

  constructor(canvas: HTMLCanvasElement, transform: (bitmap: Size, client: Size) => Size) {
    this.canvasElement = canvas
    this.#transform = transform
    this.canvasElementClientSize = { width: canvas.clientWidth, height: canvas.clientHeight }
    this.#watch()
    try {
      this.#observer.observe(canvas, { box: 'device-pixel-content-box' })
    } catch {
      // The browser does not support this box, so the predicted size stays.
    }
  }

  get bitmapSize(): Size {
    return size(this.canvasElement)
  }

  /** The ratio changes when the page is zoomed, or its window moves to another screen. */
  #watch = (): void => {
    this.#query?.removeEventListener('change', this.#watch)
    this.#query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`)
    this.#query.addEventListener('change', this.#watch)
    this.#suggest(this.#predicted())
  }

  dispose(): void {
    this.#query?.removeEventListener('change', this.#watch)
    this.#observer.disconnect()
  }

  resizeCanvasElement(client: Size): void {
    this.canvasElementClientSize = size(client)
    this.canvasElement.style.width = `${client.width}px`
    this.canvasElement.style.height = `${client.height}px`
    this.#suggest(this.#predicted())
  }

  subscribeSuggestedBitmapSizeChanged(listener: Listener): void {
    this.#listeners.add(listener)
  }

  unsubscribeSuggestedBitmapSizeChanged(listener: Listener): void {
    this.#listeners.delete(listener)
  }

  /** Changing the bitmap clears the canvas, so the chart does it right before it draws. */
  applySuggestedBitmapSize(): void {
    const wanted = this.suggestedBitmapSize
    if (wanted === null) return
    Object.assign(this.canvasElement, wanted)
    this.#change(null)
  }

  #predicted(): Size {
    const [rect] = this.canvasElement.getClientRects()
    const { left, top, width, height } = rect ?? { left: 0, top: 0, ...this.canvasElementClientSize }
    return { width: pixels(left, width, devicePixelRatio), height: pixels(top, height, devicePixelRatio) }
  }

  #suggest(exact: Size): void {
    const wanted = this.#transform(exact, this.canvasElementClientSize)
    this.#change(equalSizes(this.bitmapSize, wanted) ? null : wanted)
  }

  #change(after: Size | null): void {
    const before = this.suggestedBitmapSize
    if (before === after || (before !== null && after !== null && equalSizes(before, after))) return
    this.suggestedBitmapSize = after
    for (const listener of this.#listeners) listener(before, after)
  }
}

interface Target {
  readonly transform?: (bitmap: Size, client: Size) => Size
}

export const bindCanvasElementBitmapSizeTo = (
  canvas: HTMLCanvasElement,
  { transform = (bitmap) => bitmap }: Target,
): CanvasBinding => new CanvasBinding(canvas, transform)

/** A target that draws in pixels of the bitmap or of the style. Null while the bitmap or the style has size zero. */
export function tryCreateCanvasRenderingTarget2D(
  { canvasElement, canvasElementClientSize: mediaSize, bitmapSize }: CanvasBinding,
  options?: CanvasRenderingContext2DSettings,
) {
  const context = canvasElement.getContext('2d', options)
  if (context === null || mediaSize.width * mediaSize.height * bitmapSize.width * bitmapSize.height === 0)
    return null
  const horizontalPixelRatio = bitmapSize.width / mediaSize.width
  const verticalPixelRatio = bitmapSize.height / mediaSize.height
  const scope = { context, mediaSize, bitmapSize, horizontalPixelRatio, verticalPixelRatio }
  const draw =
    (x: number, y: number) =>
    <Result>(paint: (target: typeof scope) => Result): Result => {
      context.save()
      try {
        context.setTransform(x, 0, 0, y, 0, 0)
        return paint(scope)
      } finally {
        context.restore()
      }
    }
  return {
    useBitmapCoordinateSpace: draw(1, 1),
    useMediaCoordinateSpace: draw(horizontalPixelRatio, verticalPixelRatio),
  }
}
