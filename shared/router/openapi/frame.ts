// What an application adds to the document that its controllers make.
/** The parts of the document that controllers do not have. */
export interface OpenApiFrame {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly license?: { readonly name: string; readonly identifier?: string };
  };
  readonly servers?: readonly { readonly url: string; readonly description?: string }[];
  /** Paths that are served beside the application, as OpenAPI's path items. */
  readonly paths?: Readonly<Record<string, unknown>>;
}
