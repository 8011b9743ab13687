# tests of build
