import type { NextConfig } from "next";

const config: NextConfig = {
  serverExternalPackages: ["holdfast"], // It has files of its own, which a bundle would miss.
};

export default config;
