// `VERSION`: the version of Holdfast. All packages have the same one.

export const VERSION = "0.1.0";
